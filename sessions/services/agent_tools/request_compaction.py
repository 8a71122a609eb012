"""Compact the session's prompt now."""

from __future__ import annotations

from redaction import redact
from sessions.models import AgentSession, Compaction
from sessions.selectors.redaction import redaction_of
from sessions.services.agent_tools.base import AgentTool, Arguments, ToolError
from sessions.services.compactions.lifecycle import CompactionInProgress
from sessions.services.compactions.triggers import compaction_request
from sessions.store.text import storable

#: Maximum characters of the instructions for the summary.
_MAX_INSTRUCTIONS = 2_000


def run(session: AgentSession, arguments: Arguments) -> str:
    """Compact now, or queue the compaction if a model summarizes. Return the result."""
    instructions = arguments.get("instructions") or ""
    if not isinstance(instructions, str) or len(instructions) > _MAX_INSTRUCTIONS:
        raise ToolError(f"`instructions` must be a string of at most {_MAX_INSTRUCTIONS:,} characters")
    try:
        compaction = compaction_request(
            session=session,
            reason="requested by the model",
            instructions=redact(storable(instructions), redaction=redaction_of(session.project))[0],
        )
    except CompactionInProgress:
        raise ToolError("a compaction of this session is in progress; try again later") from None
    return _result(compaction)


def _result(compaction: Compaction) -> str:
    match compaction.state:
        case Compaction.State.DONE:
            sizes = f"{compaction.tokens_before:,} to {compaction.tokens_after:,} tokens (estimate)"
            return f"Compaction {compaction.number} is done: {sizes}. The next prompt is shorter."
        case state if state in Compaction.OPEN:
            return f"Compaction {compaction.number} is queued. Check `context_status` later."
        case state:
            return f"Compaction {compaction.number}: {state} ({compaction.reason})."


TOOL = AgentTool(
    name="request_compaction",
    description="Shorten the prompt now, for example before a new task. Originals stay retrievable.",
    schema={
        "type": "object",
        "properties": {
            "instructions": {"type": "string", "description": "what the summary should keep or leave out"}
        },
    },
    run=run,
    writes=True,
)
