"""A stored prompt as JSON bytes, with what the providers' rules about a whole prompt depend on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from compaction.jsontext import loads_bytes

_ID = re.compile(rb'"id"\s*:\s*"([^"]*)"')
_CALL_ID = re.compile(rb'"call_id"\s*:\s*"([^"]*)"')
_NESTED = re.compile(rb'"function"\s*:\s*\{')
_BREAKPOINT = b'"cache_control"'
_CALL = re.compile(rb'"function_?[cC]all"\s*:')
_CALLS, _SIGNATURES = ("functionCall", "function_call"), ("thoughtSignature", "thought_signature")
_REASONING = re.compile(rb'"(?:reasoning_content|thinking_blocks)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedMessages:
    """Messages as JSON, joined by commas. Between two compactions, `append` reads only the new ones.

    `call_ids` counts the occurrences of each `call_id`.
    """

    data: bytes = b""
    first_role: str = ""
    last_role: str = ""
    has_system: bool = False
    has_reasoning: bool = False
    has_unsigned_calls: bool = False  #: a message whose first call of Gemini lacks a signature
    breakpoints: int = 0
    ids: frozenset[bytes] = frozenset()
    has_repeated_ids: bool = False  #: which can only be judged by parsing the messages
    call_ids: Mapping[bytes, int] = field(default_factory=dict)
    has_repeated_call_ids: bool = False  #: more often than in one call and its output

    def append(self, pieces: Sequence[bytes], roles: Sequence[str]) -> JoinedMessages:
        """Return these messages, followed by others. `roles` has the role of each."""
        if not pieces:
            return self
        new = b",".join(pieces)
        new_ids, new_calls = _ID.findall(new), Counter(_CALL_ID.findall(new))
        ids = self.ids.union(new_ids)
        # Ids that are escaped differently may be equal.
        is_escaped = any(b"\\" in id for id in (*new_ids, *new_calls))
        call_ids = {**self.call_ids, **{id: n + self.call_ids.get(id, 0) for id, n in new_calls.items()}}
        return JoinedMessages(
            data=b"%b,%b" % (self.data, new) if self.data else new,
            first_role=self.first_role or roles[0],
            last_role=roles[-1],
            has_system=self.has_system or "system" in roles,
            has_reasoning=self.has_reasoning or _REASONING.search(new) is not None,
            has_unsigned_calls=self.has_unsigned_calls or any(map(_is_unsigned, pieces, roles)),
            breakpoints=self.breakpoints + new.count(_BREAKPOINT),
            ids=ids,
            has_repeated_ids=self.has_repeated_ids or is_escaped or len(ids) < len(self.ids) + len(new_ids),
            call_ids=call_ids,
            has_repeated_call_ids=self.has_repeated_call_ids or any(call_ids[id] > 2 for id in new_calls),
        )


def _is_unsigned(piece: bytes, role: str) -> bool:
    """Return whether the first call of Gemini in a message lacks its signature, as another part may have one.

    Tool outputs, which make up most of a prompt, are not searched.
    """
    if role != "assistant" or _CALL.search(piece) is None:
        return False
    message = loads_bytes(piece)
    parts = message.get("parts") if isinstance(message, Mapping) else None
    calls = [part for part in parts or () if any(part.get(name) is not None for name in _CALLS)]
    return bool(calls) and all(calls[0].get(name) is None for name in _SIGNATURES)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPrompt:
    """A prompt as JSON bytes."""

    messages: JoinedMessages
    system: bytes | None = None
    tools: bytes | None = None

    @property
    def breakpoints(self) -> int:
        """The number of cache breakpoints."""
        others = (self.system or b"", self.tools or b"")
        return self.messages.breakpoints + sum(data.count(_BREAKPOINT) for data in others)

    @property
    def has_nested_functions(self) -> bool:
        """Whether the tools are defined as in Chat Completions, with an object `function`."""
        return self.tools is not None and _NESTED.search(self.tools) is not None
