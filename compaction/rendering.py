"""Render messages as a prompt that the provider accepts."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.capabilities import Capabilities
from compaction.dialects import get_dialect
from compaction.dialects.base import Prompt
from compaction.messages import JSON, Message

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
