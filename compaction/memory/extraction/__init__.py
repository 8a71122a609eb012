"""Memory extraction: a model reads the new turns and suggests changes to the working memory.

`schedule` decides when the model is called, `prompt` builds the request, `reply` parses the reply into
suggestions, and `apply` decides which of them change the memory. Tool results are processed by
`compaction.memory.updates` instead.
"""

from compaction.memory.extraction.apply import OWN_TOKENS, Applied, apply, removed_items
from compaction.memory.extraction.prompt import fields_of
from compaction.memory.extraction.reply import Extraction
from compaction.memory.extraction.schedule import (
    MAX_INPUT_TOKENS,
    READ_TOKENS,
    TURNS_AT_ONCE,
    turns_to_extract,
)
from compaction.memory.extraction.suggestions import MAX_SUGGESTIONS, Step, Suggestion

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
    "removed_items",
    "turns_to_extract",
]
