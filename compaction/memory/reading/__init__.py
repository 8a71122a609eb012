"""Reading: what judgement adds to a working memory, by a model that reads the new turns.

`due` says when it is asked, `prompt` is what the model is sent, `reply` what its answer is taken for, `apply`
what of it comes into the memory, beside the items of others. What tools show is the part of
`compaction.memory.upkeep`, not of this.
"""

from compaction.memory.reading.apply import OWN_TOKENS, Applied, apply, taken_out
from compaction.memory.reading.due import MAX_INPUT_TOKENS, READ_TOKENS, TURNS_AT_ONCE, due
from compaction.memory.reading.prompt import fields_of
from compaction.memory.reading.reply import Reading
from compaction.memory.reading.values import MAX_SUGGESTIONS, Step, Suggestion

__all__ = [
    "MAX_INPUT_TOKENS",
    "MAX_SUGGESTIONS",
    "OWN_TOKENS",
    "READ_TOKENS",
    "TURNS_AT_ONCE",
    "Applied",
    "Reading",
    "Step",
    "Suggestion",
    "apply",
    "due",
    "fields_of",
    "taken_out",
]
