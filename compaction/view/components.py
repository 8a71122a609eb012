"""The parts of a prompt that pushed messages do not determine: system prompt, tools and working memory.

Edits record which of them a prompt contains. The position of such an edit does not mean that it changes that
message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from compaction.edits import Edit, Op

#: Components that can be shed, in this order.
SHEDDABLE = MEMORY, TOOLS = "memory", "tools"

#: Edits of a whole component.
COMPONENT_OPS = (Op.SHED, Op.RESTORE, Op.MEMORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Tokens of the parts of a prompt that are not pushed messages."""

    system: int = 0
    tools: int = 0
    memory: int = 0

    @property
    def total(self) -> int:
        return self.system + self.tools + self.memory


def with_memory(components: Components, edits: Sequence[Edit]) -> Components:
    """Return the components with the working memory that the edits record, whether or not it is shed."""
    memory = recorded_memory(edits)
    return components if memory is None else replace(components, memory=memory.tokens_after)


def shed(components: Components, edits: Iterable[Edit]) -> Components:
    """Return the components without those that the edits shed."""
    return replace(components, **dict.fromkeys(shed_names(edits), 0))


def shed_names(edits: Iterable[Edit]) -> tuple[str, ...]:
    """Return the names of the components that these edits shed, in order.

    The edits are those in force (`view.in_force`), which contain no component that was restored later.
    """
    return tuple(edit.text for edit in edits if edit.op is Op.SHED and edit.text in SHEDDABLE)


def recorded_memory(edits: Sequence[Edit]) -> Edit | None:
    """Return the latest edit that records the working memory, or None if there is none."""
    memory = Op.MEMORY
    return next((edit for edit in reversed(edits) if edit.op is memory), None)


def shown_memory(edits: Sequence[Edit]) -> Edit | None:
    """Return the edit whose working memory the prompt contains, or None if it contains none."""
    memory = recorded_memory(edits)
    return None if memory is None or not memory.text or MEMORY in shed_names(edits) else memory
