"""Change the session's working memory, which is in every compacted prompt."""

from __future__ import annotations

from compaction.errors import WorkingMemoryError
from compaction.memory.operations import Op, Operation
from compaction.memory.origins import Author, Via
from compaction.memory.values import WorkingMemory
from sessions.models import AgentSession
from sessions.selectors.memory.revisions import memory_value
from sessions.services.agent_tools.base import AgentTool, Arguments, ToolError
from sessions.services.memory.revisions import (
    MemoryTooLarge,
    ProtectedItem,
    Writer,
    memory_operate,
    memory_warning,
)

#: Maximum characters of the reason, as over the API.
_MAX_REASON = 500


def run(session: AgentSession, arguments: Arguments) -> str:
    """Apply the operations as one revision; return its number, and a warning if the memory is too long."""
    items = arguments.get("operations")
    if not isinstance(items, list) or not items:
        raise ToolError("`operations` must be a list with at least one operation")
    writer = Writer(author=Author.MODEL, via=Via.TOOL, reason=_reason(arguments))
    try:
        operations = [Operation.from_json(item) for item in items]
        revision = memory_operate(session=session, operations=operations, writer=writer)
    except (MemoryTooLarge, ProtectedItem, WorkingMemoryError) as error:
        raise ToolError(str(error)) from None
    result = f"working memory is at revision {revision.number if revision else 0}"
    warning = memory_warning(memory_value(revision), revision.tokens) if revision else None
    return f"{result}; {warning}" if warning else result


def _reason(arguments: Arguments) -> str:
    """Return the reason for the change, truncated. An update with a long reason is not rejected."""
    return str(arguments.get("reason") or "")[:_MAX_REASON]


_OPERATION = {
    "type": "object",
    "properties": {
        "op": {
            "enum": [op.value for op in Op],
            "description": "confirm: an item that is marked stale is still true",
        },
        "field": {
            "type": "string",
            "description": f"one of {', '.join(WorkingMemory().to_json())}, or a custom field of the project",
        },
        "item": {"type": "string", "description": "the exact text of the item"},
        "with": {"type": "string", "description": "for replace: the new item"},
    },
    "required": ["op", "field", "item"],
}

TOOL = AgentTool(
    name="update_working_memory",
    description=(
        "Keep notes that survive when old messages are no longer shown: the task, important files, "
        "decisions, open questions, the next step, blockers, what was tried and failed. Replace `task` when "
        "the user changes it, and `next` before you end a turn."
    ),
    schema={
        "type": "object",
        "properties": {
            "operations": {"type": "array", "items": _OPERATION},
            "reason": {"type": "string"},
        },
        "required": ["operations"],
    },
    run=run,
    writes=True,
)
