"""Re-references: whether a model later needs what a compaction removed from its prompt.

`hidden` determines the identifiers that an edit removed; `tracker` looks for them in later messages.
"""

from compaction.referenced.hidden import MAX_REFERENCES, with_references
from compaction.referenced.tracker import How, Reference, ReferenceTracker, WatchedEdit

__all__ = ["MAX_REFERENCES", "How", "Reference", "ReferenceTracker", "WatchedEdit", "with_references"]
