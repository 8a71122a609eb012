"""From messages to the prompt that goes out: repaired, in the format that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.capabilities import Capabilities
from compaction.formats import anthropic, get_format, openai
from compaction.invariants import repair
from compaction.invariants.limits import within_breakpoints
from compaction.invariants.roles import framed, leading_system
from compaction.messages import JSON, Message

_UNKNOWN_MODEL = Capabilities()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What the provider's client takes. `system` is None where the format says it in `messages`."""

    format: str
    messages: list[dict[str, JSON]]
    system: JSON = None
    tools: list[JSON] | None = None

    def to_json(self) -> dict[str, JSON]:
        """The request's fields; those that are not there are left out."""
        fields = {"system": self.system, "messages": self.messages, "tools": self.tools}
        return {name: value for name, value in fields.items() if value is not None}


def render(
    messages: Sequence[Message],
    *,
    format: str,
    system: JSON = None,
    tools: JSON = None,
    capabilities: Capabilities = _UNKNOWN_MODEL,
) -> Prompt:
    """The prompt of these messages, valid for the provider whatever they are.

    `system` and `tools` are as they were pushed, in either format. Messages that were pushed in this
    format and that nobody edited come out as the same JSON. Raises FormatError for an unknown format.
    """
    get_format(format)
    sound = repair(messages, format, capabilities)
    if format == openai.NAME:
        items = openai.system_message(system) + openai.conversation(sound)
        return Prompt(format=format, messages=items, tools=openai.tools_field(tools) or None)
    lead = leading_system(sound)
    field = anthropic.system_field(sound[:lead], system) or None
    definitions = anthropic.tools_field(tools)
    items = framed(anthropic.conversation(sound[lead:]), capabilities)
    items = within_breakpoints(items, field, definitions)
    return Prompt(format=format, messages=items, system=field, tools=definitions or None)
