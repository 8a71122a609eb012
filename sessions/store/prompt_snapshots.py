"""Prompt snapshots: the outline of a prompt, without the content of messages that no edit changes.

A snapshot is stored at every compaction and read at every fetch. It refers to unchanged messages by position
and contains the JSON of the others. Most of this is the recap, whose text is also stored with an edit, so the
snapshot is compressed with this text as the dictionary, to a few hundred bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from compaction.view import VERBATIM
from sessions.store import bodies
from sessions.store.prompt_bytes import PromptMessages, manifest_entry

#: A half-open range of positions.
Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A message that an edit changed or generated: its JSON and its manifest entry."""

    data: bytes
    entry: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptOutline:
    """The messages of a prompt in order: spans of positions whose messages are unchanged, and the others."""

    entries: Sequence[Span | Generated] = ()

    @classmethod
    def of(cls, messages: PromptMessages) -> PromptOutline:
        entries: list[Span | Generated] = []
        for data, entry in zip(messages.pieces, messages.manifest, strict=True):
            position = entry["positions"]["first"]
            if entry["rule"] != VERBATIM:
                entries.append(Generated(data=data, entry=entry))
            elif entries and isinstance(entries[-1], tuple) and entries[-1][1] == position:
                entries[-1] = (entries[-1][0], position + 1)
            else:
                entries.append((position, position + 1))
        return cls(entries=entries)

    @property
    def spans(self) -> Sequence[Span]:
        return [entry for entry in self.entries if isinstance(entry, tuple)]

    def append(self, span: Span) -> PromptOutline:
        """Return the outline with the messages of a span after the others."""
        return PromptOutline(entries=[*self.entries, span])

    def fill(self, rows: Mapping[int, tuple[str, int, bytes] | None]) -> PromptMessages:
        """Return the messages. `rows` has the role, tokens and JSON of each position in the spans.

        Leaves out a message whose row is None. Raises `KeyError` if a position is missing.
        """
        pieces: list[bytes] = []
        manifest: list[Mapping[str, Any]] = []
        is_complete = True
        for each in self.entries:
            if isinstance(each, Generated):
                pieces.append(each.data)
                manifest.append(each.entry)
                continue
            for position in range(*each):
                row = rows[position]
                if row is None:
                    continue
                role, tokens, data = row
                is_complete = is_complete and not isinstance(data, bodies.Placeholder)
                pieces.append(data)
                manifest.append(manifest_entry(position, position, role, VERBATIM, tokens, tokens))
        return PromptMessages(pieces=pieces, manifest=manifest, is_complete=is_complete)

    def pack(self, text: str | None) -> bytes:
        """Return the outline as stored in `PromptSnapshot.data`: a line of JSON, and the generated messages.

        `text` is a text that they probably contain; `unpack` requires the same one.
        """
        generated = [each for each in self.entries if isinstance(each, Generated)]
        outline = [
            [len(each.data), each.entry] if isinstance(each, Generated) else each for each in self.entries
        ]
        data = b"%b\n%b" % (orjson.dumps(outline), b"".join(each.data for each in generated))
        return bodies.pack(data) if text is None else bodies.pack_after(data, bodies.json_bytes(text))

    @classmethod
    def unpack(cls, packed: bytes | memoryview, text: str | None) -> PromptOutline:
        """Return the outline packed by `pack`."""
        data = bodies.unpack(packed) if text is None else bodies.unpack_after(packed, bodies.json_bytes(text))
        line, _, joined = data.partition(b"\n")
        entries: list[Span | Generated] = []
        start = 0
        for first, second in orjson.loads(line):
            if isinstance(second, int):
                entries.append((first, second))
            else:
                entries.append(Generated(data=joined[start : start + first], entry=second))
                start += first
        return cls(entries=entries)
