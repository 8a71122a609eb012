"""Render messages as a prompt that the provider accepts."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.capabilities import Capabilities
from compaction.continuation import Continuation
from compaction.dialects import get_dialect, parse_mixed
from compaction.dialects.base import Prompt
from compaction.dialects.blocks import OPENING
from compaction.messages import JSON, Message, Role, Text

_UNKNOWN_MODEL = Capabilities()


def render(
    messages: Sequence[Message],
    *,
    format: str,
    system: JSON = None,
    tools: JSON = None,
    capabilities: Capabilities = _UNKNOWN_MODEL,
) -> Prompt:
    """Return a valid prompt in the dialect `format` for any messages.

    `messages`, `system` and `tools` may be in any dialect. Unedited messages of the same dialect are rendered
    as the JSON that was pushed. Raises `FormatError` for an unknown dialect.
    """
    dialect = get_dialect(format)
    return dialect.render_prompt(messages, system=system, tools=tools, capabilities=capabilities)


def missing_results(
    response: Sequence[JSON], state: Continuation, *, format: str, capabilities: Capabilities
) -> list[dict[str, JSON]] | None:
    """Return the messages that must follow a regular prompt whose newest response has open calls.

    They replace the missing results; there are none if the model accepts a prompt that ends with the calls.
    `response` is the newest response with the results that follow it, in the dialect `format`, and `state`
    the continuation state of the prompt. Returns None if the prompt must be rendered as a whole.
    """
    messages = parse_mixed(response, default=format)
    if Continuation().after(messages, format) != state:
        return None
    opening = Message(position=0, role=Role.USER, parts=(Text(text=OPENING),))
    shown = render((opening, *messages), format=format, capabilities=capabilities).messages[1:]
    return shown[len(response) :] if shown[: len(response)] == response else None
