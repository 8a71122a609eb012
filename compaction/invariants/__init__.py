"""What a provider takes: a file a family of rules (A1 to A12 at Anthropic, C1 to C5 at OpenAI).

Each file has `violations(subject)`, and where it can, a repair; `pairs` also says where a cut is safe.
A new rule is a new file and a line in `_FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Sequence

from compaction import formats
from compaction.capabilities import Capabilities
from compaction.invariants import content, limits, pair_repair, pairs, roles, server_tools, thinking
from compaction.invariants.violations import Subject, Violation
from compaction.messages import JSON, Message

__all__ = ["Violation", "repair", "safe_cuts", "validate"]

_FAMILIES = (pairs, server_tools, roles, content, thinking, limits)

_UNKNOWN_MODEL = Capabilities()

safe_cuts = pairs.safe_cuts


def validate(
    messages: Sequence[JSON],
    format: str,
    *,
    system: JSON = None,
    tools: JSON = None,
    capabilities: Capabilities = _UNKNOWN_MODEL,
    edited: range = range(0),
) -> tuple[Violation, ...]:
    """Every broken rule of anybody's messages, by position; empty where the provider takes them.

    `edited` are the indices of messages that were there when an earlier one was last edited: only the
    caller knows it, and A11 asks for it. Raises FormatError for an unknown format.
    """
    subject = Subject(
        format=format,
        items=messages,
        messages=formats.parse(messages, format=format),
        capabilities=capabilities,
        system=system,
        tools=tools,
        edited=edited,
    )
    found = [violation for family in _FAMILIES for violation in family.violations(subject)]
    return tuple(sorted(found, key=lambda violation: violation.position))


def repair(messages: Sequence[Message], format: str, capabilities: Capabilities) -> tuple[Message, ...]:
    """The messages as `format` takes them; the same objects where nothing was wrong."""
    if format != "anthropic":
        return pair_repair.repair(messages, merged=False, open_end=capabilities.prefill)
    lead = roles.leading_system(messages)
    told = roles.tell_system(messages[lead:], capabilities)
    sound = thinking.repair(server_tools.repair(told))
    paired = pair_repair.repair(sound, merged=True, open_end=capabilities.prefill)
    return (*messages[:lead], *paired)
