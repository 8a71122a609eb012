"""Working memory: notes that stay in the prompt when old turns are compacted.

`values` defines the memory, `schema` its fields, `origins` the author of each item, `operations` the changes
that the agent's tool makes, `diffs` the changes between revisions. `updates` keeps the memory current from
tool results, `extraction` from new turns that a model reads.
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
