"""Memory extraction: a model reads new turns and suggests changes to the working memory.

`schedule` decides when to call the model, `prompt` builds the request, `reply` validates the answer, and
`apply` applies it. What tools show is handled by `compaction.memory.updates` instead.
"""

from compaction.memory.extraction.apply import OWN_TOKENS, Applied, apply, taken_out
from compaction.memory.extraction.prompt import fields_of
from compaction.memory.extraction.reply import Extraction
from compaction.memory.extraction.schedule import (
    MAX_INPUT_TOKENS,
    READ_TOKENS,
    TURNS_AT_ONCE,
    turns_to_extract,
)
from compaction.memory.extraction.values import MAX_SUGGESTIONS, Step, Suggestion

__all__ = [
    "MAX_INPUT_TOKENS",
    "MAX_SUGGESTIONS",
    "OWN_TOKENS",
    "READ_TOKENS",
    "TURNS_AT_ONCE",
    "Applied",
    "Extraction",
    "Step",
    "Suggestion",
    "apply",
    "fields_of",
    "taken_out",
    "turns_to_extract",
]
