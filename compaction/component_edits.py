"""Create the edits of components: those that shed a component, or restore it."""

from __future__ import annotations

from compaction.context import Context
from compaction.edits import Edit, Op
from compaction.messages import ToolCall
from compaction.view import View
from compaction.view.components import TOOLS, shed_names


def removable_components(view: View, context: Context) -> tuple[str, ...]:
    """Return the components that may be removed: not the tools if the view has calls, which require them."""
    uses_tools = any(isinstance(part, ToolCall) for message in view.messages for part in message.parts)
    return tuple(name for name in context.sheddable if name != TOOLS or not uses_tools)


def shed_edit(strategy: str, name: str, view: View, context: Context) -> tuple[Edit, ...]:
    """Return the edit that removes a component, or none if the prompt does not contain it."""
    tokens = getattr(view.components, name)
    if not tokens:
        return ()
    at = context.start.end_position
    reason = f"{name} leave no room for the messages"
    return (
        Edit(
            strategy=strategy, op=Op.SHED, position=at, end=at, text=name, reason=reason, tokens_before=tokens
        ),
    )


def restore_edits(view: View) -> tuple[Edit, ...]:
    """Return the edits that restore every shed component of the view."""
    at = view.end_position
    return tuple(
        Edit(
            strategy="shed",
            op=Op.RESTORE,
            position=at,
            end=at,
            text=name,
            reason=f"room for {name} again",
            tokens_after=getattr(view.unshed_components, name),
        )
        for name in shed_names(view.edits)
    )
