"""Referenced later: whether a model needs what a compaction took away from its prompt.

`hidden` names what an edit took away; `watch` looks at the messages that come after it.
"""

from compaction.referenced.hidden import MAX_REFERENCES, with_references
from compaction.referenced.tracker import How, Reference, ReferenceTracker, WatchedEdit

__all__ = ["MAX_REFERENCES", "How", "Reference", "ReferenceTracker", "WatchedEdit", "with_references"]
