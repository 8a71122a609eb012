"""A stored prompt as JSON bytes, with what the providers' rules about a whole prompt depend on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

_ID = re.compile(rb'"id"\s*:\s*"([^"]*)"')
_CALL_ID = re.compile(rb'"call_id"\s*:\s*"([^"]*)"')
_BREAKPOINT = b'"cache_control"'
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
    has_unsigned_calls: bool = False  #: a message whose calls lack a signature (see `Dialect.is_unsigned`)
    breakpoints: int = 0
    ids: frozenset[bytes] = frozenset()
    has_repeated_ids: bool = False  #: which can only be judged by parsing the messages
    call_ids: Mapping[bytes, int] = field(default_factory=dict)
    has_repeated_call_ids: bool = False  #: more often than in one call and its output

    def append(
        self, pieces: Sequence[bytes], roles: Sequence[str], is_unsigned: Callable[[bytes], bool]
    ) -> JoinedMessages:
        """Return these messages, followed by others. `roles` has the role of each.

        `is_unsigned` is asked only about answers: tool outputs make up most of a prompt.
        """
        if not pieces:
            return self
        new = b",".join(pieces)
        new_ids, new_calls = _ID.findall(new), Counter(_CALL_ID.findall(new))
        ids = self.ids.union(new_ids)
        # Ids that are escaped differently may be equal.
        is_escaped = any(b"\\" in id for id in (*new_ids, *new_calls))
        answers = (piece for piece, role in zip(pieces, roles, strict=True) if role == "assistant")
        call_ids = {**self.call_ids, **{id: n + self.call_ids.get(id, 0) for id, n in new_calls.items()}}
        return JoinedMessages(
            data=b"%b,%b" % (self.data, new) if self.data else new,
            first_role=self.first_role or roles[0],
            last_role=roles[-1],
            has_system=self.has_system or "system" in roles,
            has_reasoning=self.has_reasoning or _REASONING.search(new) is not None,
            has_unsigned_calls=self.has_unsigned_calls or any(map(is_unsigned, answers)),
            breakpoints=self.breakpoints + new.count(_BREAKPOINT),
            ids=ids,
            has_repeated_ids=self.has_repeated_ids or is_escaped or len(ids) < len(self.ids) + len(new_ids),
            call_ids=call_ids,
            has_repeated_call_ids=self.has_repeated_call_ids or any(call_ids[id] > 2 for id in new_calls),
        )


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
