"""Re-references: detect whether a model later needs content that a compaction removed from its prompt.

`hidden` determines the identifiers that an edit removed; `tracker` searches later messages for them.
"""

from compaction.referenced.hidden import MAX_REFERENCES, with_references
from compaction.referenced.tracker import How, Reference, ReferenceTracker, WatchedEdit

__all__ = ["MAX_REFERENCES", "How", "Reference", "ReferenceTracker", "WatchedEdit", "with_references"]
