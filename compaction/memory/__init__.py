"""Working memory: what is kept on purpose while old turns are compacted.

`values` is the memory, `schema` its fields, `origins` who wrote what, `operations` what the agent's tool does
to it, `diffs` how it moves. `upkeep` keeps it current from what tools were seen to do, `reading` from what a
model makes of the new turns.
"""

from compaction.memory.diffs import Change, Churn, FieldMotion, Motion, churn, diff, motions
from compaction.memory.origins import Author, Notes, Origin, Via
from compaction.memory.schema import MAX_FILES, CustomField, Schema
from compaction.memory.values import ASKED_TOKENS, MAX_TOKENS, WorkingMemory

__all__ = [
    "ASKED_TOKENS",
    "MAX_FILES",
    "MAX_TOKENS",
    "Author",
    "Change",
    "Churn",
    "CustomField",
    "FieldMotion",
    "Motion",
    "Notes",
    "Origin",
    "Schema",
    "Via",
    "WorkingMemory",
    "churn",
    "diff",
    "motions",
]
