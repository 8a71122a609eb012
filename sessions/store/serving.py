"""From what is stored to the JSON of a prompt. Pure; the database is read in `selectors/prompts.py`.

A prompt is put together from *elements*: the bytes of each shown message in the session's own format, as
pushed or as an edit left it. Where the push path knows that they follow each other validly they are joined
as they lie, which is both the fastest way and the one that keeps every byte; otherwise they are parsed
and the core repairs and renders them. The same elements always make the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from compaction import dialects
from compaction.capabilities import Capabilities
from compaction.continuation import Continuation
from compaction.dialects.base import StoredPrompt
from compaction.messages import Message
from compaction.rendering import render
from compaction.view import VERBATIM, View
from sessions.store import bodies
from sessions.store.rawjson import raw_elements


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """The shown messages: their JSON joined by commas, and one manifest entry for each."""

    data: bytes = b""
    manifest: Sequence[Mapping[str, Any]] = ()

    def and_then(self, rows: Sequence[tuple[int, str, int, bytes]]) -> Elements:
        """With messages behind them that no edit touches: position, role, tokens, JSON."""
        if not rows:
            return self
        joined = b",".join(data for _, _, _, data in rows)
        added = [_manifest(at, at, role, VERBATIM, tokens, tokens) for at, role, tokens, _ in rows]
        return Elements(
            data=b"%b,%b" % (self.data, joined) if self.data else joined,
            manifest=[*self.manifest, *added],
        )

    def with_memory(self, text: str, tokens: int) -> Elements:
        """With the working memory as a message of its own behind the head: the task and what goes before."""
        roles = [entry["role"] for entry in self.manifest]
        at = roles.index("user") + 1 if "user" in roles else len(roles)
        pieces = raw_elements(b'{"messages":[%b]}' % self.data, "messages")
        pieces.insert(at, bodies.json_bytes({"role": "user", "content": text}))
        position = self.manifest[at - 1]["positions"]["last"] if at else 0
        entry = _manifest(position, position, "user", "memory", 0, tokens)
        return Elements(data=b",".join(pieces), manifest=[*self.manifest[:at], entry, *self.manifest[at:]])

    def pack(self) -> bytes:
        return bodies.pack(orjson.dumps(self.manifest) + b"\n" + self.data)

    @classmethod
    def unpack(cls, data: bytes | memoryview | None) -> Elements:
        if data is None:
            return cls()
        manifest, _, joined = bodies.unpack(data).partition(b"\n")
        return cls(data=joined, manifest=orjson.loads(manifest))

    def values(self) -> list[dict[str, Any]]:
        values: list[dict[str, Any]] = bodies.json_value(b"[%b]" % self.data)
        return values


def elements_of(view: View, raw: Mapping[int, bytes], format: str) -> tuple[Elements, Continuation]:
    """The elements of a view, and the seam behind them; `raw` has the pushed bytes of its messages by
    position."""
    dialect = dialects.get_dialect(format)
    original = {message.position: message for message in view.transcript}
    data: list[bytes] = []
    manifest: list[Mapping[str, Any]] = []
    shown: list[Message] = []
    for entry in view.entries:
        message = entry.message
        verbatim = original.get(entry.first) is message
        if verbatim:
            pieces = [raw[entry.first]]
            shown.append(message)
        else:
            items = dialect.render_message(message)
            pieces = list(map(bodies.json_bytes, items))
            shown += dialects.parse(items, format=format)
        data += pieces
        whole = message.tokens if entry.is_made or verbatim else original[entry.first].tokens
        manifest += (
            _manifest(entry.first, entry.last, message.role, entry.rule, whole, message.tokens)
            for _ in pieces
        )
    return Elements(data=b",".join(data), manifest=manifest), Continuation().after(shown, format)


def _manifest(first: int, last: int, role: str, rule: str, raw: int, shown: int) -> Mapping[str, Any]:
    return {
        "positions": {"first": first, "last": last},
        "role": role,
        "rule": rule,
        "tokens_raw": raw,
        "tokens": shown,
    }


def prompt_fields(
    elements: Elements,
    *,
    native: str,
    wanted: str,
    system: bytes | None,
    tools: bytes | None,
    regular: bool,
    capabilities: Capabilities,
) -> dict[str, Any]:
    """Return the request fields of the prompt, ready for orjson. `regular`: see `Continuation`."""
    if regular and native == wanted:
        roles = [entry["role"] for entry in elements.manifest]
        stored = StoredPrompt(messages=elements.data, roles=roles, system=system, tools=tools)
        joined = dialects.get_dialect(native).join_stored(stored, capabilities)
        if joined is not None:
            return {name: orjson.Fragment(data) for name, data in joined.items()}
    prompt = render(
        dialects.parse(elements.values(), format=native),
        format=wanted,
        system=bodies.json_value(system) if system else None,
        tools=bodies.json_value(tools) if tools else None,
        capabilities=capabilities,
    )
    return prompt.to_json()
