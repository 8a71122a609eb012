"""Parse the history in a request body, starting at the first message that is new since the last request."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import xxhash

from compaction.identity import history_digest, message_hashes
from redaction import Redaction
from sessions.models import ClientHistory
from sessions.services.reconcile.values import InvalidHistory
from sessions.store.bodies import json_bytes
from sessions.store.rawjson import list_start, read_list

_BREAKPOINT = b'"cache_control"'

#: Maximum number of histories whose prefix is compared with the body.
_COMPARED = 3


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A client's history. `values` and `elements` are its messages from `first` on, as JSON and as bytes.

    The preceding messages are those of the history `base`, with whose prefix the body begins. `start` is the
    offset of the first message, `ends` contains the offset after each message from `first` on, and `prefix`
    is the hash of the bytes in between. `before` is the digest of the preceding messages.

    With `is_continued`, the body does not contain them: the provider stores them.
    """

    redaction: Redaction
    fields: Mapping[str, Any]
    values: Sequence[Any]
    elements: Sequence[bytes]
    first: int = 0
    base: ClientHistory | None = None
    start: int = 0
    ends: Sequence[int] = ()
    body: bytes = b""
    prefix: xxhash.xxh3_128
    before: bytes = field(default_factory=lambda: history_digest(()))
    is_continued: bool = False

    @property
    def count(self) -> int:
        return self.first + len(self.values)

    @cached_property
    def hashes(self) -> list[bytes]:
        """The hashes of the messages from `first` on."""
        return message_hashes(self.values, key=self.redaction.key, after=self.first)

    @cached_property
    def digests(self) -> list[bytes]:
        """The digest of the history up to each message from `first` on, beginning with that before it."""
        digests = [self.before]
        for each in self.hashes:
            digests.append(history_digest([each], start=digests[-1]))
        return digests

    def digest_at(self, count: int) -> bytes | None:
        """Return the digest of the first `count` messages, or None if it is unknown or there are fewer."""
        return self.digests[count - self.first] if self.first <= count <= self.count else None

    def from_index(self, index: int) -> tuple[list[bytes], list[Any], list[bytes]]:
        """Return the bytes, values and hashes of the messages from `index` on, which must be parsed."""
        at = index - self.first
        return list(self.elements[at:]), list(self.values[at:]), self.hashes[at:]

    def apply_to(self, history: ClientHistory) -> None:
        """Set the count, the digest and the prefix of a client's history to those after the request.

        The prefix ends before the first cache breakpoint, because breakpoints move from request to request.
        It remains unchanged if the request does not contain the whole history.
        """
        history.count, history.digest = self.count, self.digests[-1]
        if self.is_continued:
            return
        stable = next((i for i, data in enumerate(self.elements) if _BREAKPOINT in data), len(self.elements))
        stable = min(stable, len(self.ends))
        done = self.start + (self.base.prefix_bytes if self.base else 0)
        end = self.ends[stable - 1] if stable else done
        hasher = self.prefix.copy()
        hasher.update(self.body[done:end])
        history.prefix_count, history.prefix_bytes = self.first + stable, end - self.start
        history.prefix_hash, history.prefix_digest = hasher.digest(), self.digests[stable]


def history_read(
    body: bytes, *, redaction: Redaction, histories: Sequence[ClientHistory] = (), field: str = "messages"
) -> Reading:
    """Parse the body, whose `field` contains the history, from the prefix of one of the `histories` on.

    Raises `BadJson` or `InvalidHistory`.
    """
    start = list_start(body, field)
    if start is None:
        raise InvalidHistory(None, f"`{field}` must be an array.")
    sent = _Body(data=body, field=field, start=start, redaction=redaction)
    for base in histories[:_COMPARED]:
        if (reading := sent.read_after(base)) is not None:
            return reading
    return sent.read(start, sent.hasher())


def history_read_after(body: bytes, base: ClientHistory, *, redaction: Redaction) -> Reading | None:
    """Parse the messages that follow the prefix of a history, or return None if the body has another one.

    Raises `BadJson` or `InvalidHistory`.
    """
    start = list_start(body, "messages")
    if start is None:
        return None
    return _Body(data=body, field="messages", start=start, redaction=redaction).read_after(base)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Body:
    """A request body, whose `field` contains the history. The first message begins at the offset `start`."""

    data: bytes
    field: str
    start: int
    redaction: Redaction

    def hasher(self) -> xxhash.xxh3_128:
        """Return the state of an empty hash. Cryptographic hashes take ten times as long.

        The seed keeps a message's author from choosing contents with the same hash.
        """
        key = hashlib.blake2b(self.redaction.key[:64], digest_size=8).digest()
        return xxhash.xxh3_128(seed=int.from_bytes(key))

    def read_after(self, base: ClientHistory) -> Reading | None:
        """Parse the messages that follow the prefix of a history, None if the body has another one."""
        body, end = self.data, self.start + base.prefix_bytes
        if not base.prefix_count or end >= len(body):
            return None
        hasher = self.hasher()
        hasher.update(memoryview(body)[self.start : end])
        if hasher.digest() != bytes(base.prefix_hash):
            return None
        rest = body[end:].lstrip(b" \t\r\n")
        if rest[:1] not in {b",", b"]"}:
            return None
        return self.read(len(body) - len(rest) + rest.startswith(b","), hasher, base)

    def read(self, at: int, hasher: xxhash.xxh3_128, base: ClientHistory | None = None) -> Reading:
        """Parse the messages from offset `at` on, which follow the prefix of `base`."""
        start, body = self.start, self.data
        new = body if at == start else body[:start] + body[at:]
        fields, values, spans = read_list(new, self.field, start)
        if not isinstance(values, list):
            raise InvalidHistory(None, f"`{self.field}` must be an array.")
        # Without spans, the key occurs twice.
        elements = [new[begin:end] for begin, end in spans] or list(map(json_bytes, values))
        return Reading(
            redaction=self.redaction,
            fields=fields,
            values=values,
            elements=elements,
            first=base.prefix_count if base is not None else 0,
            base=base,
            start=start,
            ends=[end + at - start for _, end in spans],
            body=body,
            prefix=hasher,
            before=bytes(base.prefix_digest) if base is not None else history_digest(()),
        )


def with_answers(reading: Reading, answers: Sequence[Mapping[str, Any]]) -> Reading:
    """Return the reading with the messages of the model's response as its last ones."""
    if not answers:
        return reading
    return replace(
        reading,
        values=[*reading.values, *answers],
        elements=[*reading.elements, *map(json_bytes, answers)],
    )
