"""What a model accepts that another refuses (rules A7, A9, A11 of Anthropic's API)."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What the model takes. The defaults suit a model that we know nothing about."""

    prefill: bool = True  #: A7: the last message may be the assistant's
    system_messages: bool = False  #: A9: `role: "system"` may stand inside `messages`
    bound_thinking: bool = False  #: A11: thinking is bound to the whole prompt before it


#: (family, first version without prefill, first with bound thinking and with system messages)
_CLAUDE = {
    "opus": ((4, 6), (5, 5)),
    "sonnet": ((4, 6), (5, 5)),
    "haiku": ((4, 6), (5, 5)),
    "fable": ((4, 6), (5, 1)),
    "mythos": ((4, 6), (5, 1)),
}
_NAME = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")


def capabilities_of(model: str) -> Capabilities:
    """Capabilities by model name; the defaults for a name that we do not know."""
    found = _NAME.search(model.lower())
    if not found:
        return Capabilities()
    version = (int(found[2]), int(found[3] or 0))
    no_prefill, bound = _CLAUDE[found[1]]
    return Capabilities(
        prefill=version < no_prefill,
        system_messages=version >= bound,
        bound_thinking=version >= bound,
    )
