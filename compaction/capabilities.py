"""Capabilities that differ between models (rules A7, A9 and A11 of Anthropic, C5 of OpenAI, G4 of Gemini)."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The content that a model accepts. The defaults are for unknown models."""

    prefill: bool = True  #: A7: the last message may be from the assistant
    system_messages: bool = False  #: A9: `messages` may contain the role `system`
    bound_thinking: bool = False  #: A11: thinking is only valid after an unchanged prompt
    compaction: bool = False  #: the provider can summarize
    reasoning_field: bool = True  #: C5: assistant messages may have `reasoning_content`
    thought_signatures: bool = False  #: G4: calls require their `thoughtSignature`


#: By family: the first version without prefill, with bound thinking, and with system messages.
#: Source: https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
_CLAUDE = {
    "opus": ((4, 6), (5, 5), (4, 8)),
    "sonnet": ((4, 6), (5, 5), (5, 5)),
    "haiku": ((4, 6), (5, 5), (5, 5)),
    "fable": ((4, 6), (5, 1), (5, 0)),
    "mythos": ((4, 6), (5, 1), (5, 0)),
}
#: OpenAI's own models. Other models with this API have a field for their reasoning.
_OPENAI = re.compile(r"(?:^|/)(?:gpt-(?!oss)|chatgpt-|o\d)")
#: Gemini's models from version 3 on, and the aliases of the latest models, require signatures.
_GEMINI = re.compile(r"(?:^|/)gemini-(?:[3-9]|[12]\d|(?:pro|flash|flash-lite)-latest$)")
_NAME = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")


def capabilities_of(model: str) -> Capabilities:
    """Return the capabilities of a model by its name, or the defaults for an unknown name."""
    name = model.lower()
    found = _NAME.search(name)
    if not found:
        return Capabilities(
            reasoning_field=_OPENAI.search(name) is None,
            thought_signatures=_GEMINI.search(name) is not None,
        )
    version = (int(found[2]), int(found[3] or 0))
    no_prefill, bound, system_messages = _CLAUDE[found[1]]
    return Capabilities(
        prefill=version < no_prefill,
        system_messages=version >= system_messages,
        bound_thinking=version >= bound,
        compaction=version >= (bound if found[1] == "haiku" else no_prefill),
    )
