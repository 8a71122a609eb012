"""The messages of a prompt after edits, with the source of each: `view = apply(edits, messages)`.

`entries` are its messages; `components` are its other parts: system prompt, tools and working memory.
"""

from compaction.view.entries import VERBATIM, Entry
from compaction.view.view import View, apply, in_force, revert

__all__ = ["VERBATIM", "Entry", "View", "apply", "in_force", "revert"]
