"""Assemble prompts from the stored bytes of messages. Pure: `selectors.prompts` reads the database.

A stored message is the JSON that was pushed, or that an edit produced, in the dialect in which it was pushed.
If all are in the session's dialect and follow each other validly, their bytes are joined, which is fast and
changes no byte; otherwise they are parsed and rendered (`compaction.rendering`). Of a prompt that ends with
open calls, only the newest response is parsed. The same stored bytes always give the same prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson

from compaction import dialects
from compaction.capabilities import Capabilities
from compaction.continuation import Continuation
from compaction.dialects.stored import JoinedMessages, StoredPrompt
from compaction.messages import Message, Role, Text
from compaction.rendering import missing_results, render
from compaction.strategies.clear_thinking import NAME as CLEAR_THINKING
from compaction.view import Entry, View
from compaction.view.components import MEMORY
from sessions.store import bodies


@dataclass(frozen=True, kw_only=True)
class PromptMessages:
    """The messages of a prompt as JSON, and a manifest entry for each.

    `is_complete` is false if the content of a message is lost and another takes its place.
    """

    pieces: Sequence[bytes] = ()
    manifest: Sequence[Mapping[str, Any]] = ()
    is_complete: bool = True
    _joined: JoinedMessages | None = field(default=None, compare=False, repr=False)

    @cached_property
    def joined(self) -> JoinedMessages:
        return self._joined or JoinedMessages().append(self.pieces, self.roles, dialects.is_unsigned)

    @property
    def roles(self) -> list[str]:
        return [entry["role"] for entry in self.manifest]

    @property
    def newest_response(self) -> list[dict[str, Any]]:
        """The messages of the newest response and the results that follow it, as JSON values.

        Empty if other messages follow.
        """
        start = len(self.manifest)
        for role in (Role.TOOL, Role.ASSISTANT):
            while start and self.manifest[start - 1]["role"] == role:
                start -= 1
        values: list[dict[str, Any]] = bodies.json_value(b"[%b]" % b",".join(self.pieces[start:]))
        return values

    def append(self, messages: PromptMessages) -> PromptMessages:
        """Return these messages, followed by others. Does not join these again."""
        return PromptMessages(
            pieces=[*self.pieces, *messages.pieces],
            manifest=[*self.manifest, *messages.manifest],
            is_complete=self.is_complete and messages.is_complete,
            _joined=self.joined.append(messages.pieces, messages.roles, dialects.is_unsigned),
        )

    def with_memory(self, text: str, tokens: int, format: str | None) -> PromptMessages:
        """Replace the working memory, or insert it after the first user message. Empty, it is removed.

        `format` is the dialect of the session.
        """
        pieces, manifest = list(self.pieces), list(self.manifest)
        rules = [entry["rule"] for entry in manifest]
        roles = self.roles
        if MEMORY in rules:
            at = rules.index(MEMORY)
            del pieces[at], manifest[at]
        else:
            at = roles.index("user") + 1 if "user" in roles else len(roles)
        if text:
            position = manifest[at - 1]["positions"]["last"] if at else 0
            memory = Message(position=position, role=Role.USER, parts=(Text(text=text),))
            [item] = dialects.get_dialect(format).render_message(memory)
            pieces.insert(at, bodies.json_bytes(item))
            manifest.insert(at, manifest_entry(position, position, memory.role, MEMORY, 0, tokens))
        return PromptMessages(pieces=pieces, manifest=manifest, is_complete=self.is_complete)

    def values(self) -> list[dict[str, Any]]:
        """Return the messages as JSON values."""
        values: list[dict[str, Any]] = bodies.json_value(b"[%b]" % self.joined.data)
        return values


def messages_of_view(
    view: View, raw: Mapping[int, bytes], format: str | None
) -> tuple[PromptMessages, Continuation]:
    """Return the messages that a view shows, and the continuation state after them.

    `raw` maps the position of each message to the bytes that were pushed. `format` is the dialect of the
    session; an edited message stays in its own dialect.
    """
    original = {message.position: message for message in view.transcript}
    shown_pieces: list[bytes] = []
    manifest: list[Mapping[str, Any]] = []
    shown: list[Message] = []
    entries = view.prompt_entries
    messages = dialects.get_dialect(format).after_edits([entry.message for entry in entries])
    for entry, message in zip(entries, messages, strict=True):
        verbatim = original.get(entry.first) is message
        if verbatim:
            pieces = [raw[entry.first]]
            shown.append(message)
        else:
            items = dialects.get_dialect(message.format or format).render_message(message)
            pieces = list(map(bodies.json_bytes, items))
            shown += dialects.parse_mixed(items, default=format)
        shown_pieces += pieces
        raw_tokens = _raw_tokens(entry, original)
        rule = entry.rule if message is entry.message else CLEAR_THINKING
        manifest += (
            manifest_entry(entry.first, entry.last, message.role, rule, raw_tokens, message.tokens)
            for _ in pieces
        )
    is_complete = not any(isinstance(piece, bodies.Placeholder) for piece in shown_pieces)
    prompt = PromptMessages(pieces=shown_pieces, manifest=manifest, is_complete=is_complete)
    return prompt, Continuation().after(shown, format)


def _raw_tokens(entry: Entry, original: Mapping[int, Message]) -> int:
    """Return the size of an entry's messages before any edit. The transcript contains no working memory."""
    if entry.rule == MEMORY:
        return 0
    return entry.message.tokens if entry.is_generated else original[entry.first].tokens


def manifest_entry(
    first: int, last: int, role: str, rule: str, raw_tokens: int, tokens: int
) -> Mapping[str, Any]:
    """Return the source of a message in a prompt: its positions, and its tokens before and after edits."""
    return {
        "positions": {"first": first, "last": last},
        "role": role,
        "rule": rule,
        "tokens_raw": raw_tokens,
        "tokens": tokens,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestParts:
    """What a provider request is made of, besides its messages.

    `stored_format` is the dialect of the session, `format` that of the request. `continuation` is the state
    after the messages.
    """

    stored_format: str | None
    format: str | None
    system: bytes | None
    tools: bytes | None
    continuation: Continuation
    capabilities: Capabilities


def request_fields(messages: PromptMessages, parts: RequestParts) -> dict[str, Any]:
    """Return the fields of a provider request, ready for orjson."""
    joined = joined_fields(messages, parts)
    if joined is not None:
        return joined
    prompt = render(
        dialects.parse_mixed(messages.values(), default=dialects.get_dialect(parts.stored_format).name),
        format=dialects.get_dialect(parts.format).name,
        system=bodies.json_value(parts.system) if parts.system else None,
        tools=bodies.json_value(parts.tools) if parts.tools else None,
        capabilities=parts.capabilities,
    )
    return prompt.to_json()


def joined_fields(messages: PromptMessages, parts: RequestParts) -> dict[str, Any] | None:
    """Return the fields like `request_fields`, or None if the stored bytes cannot be joined."""
    dialect = dialects.get_dialect(parts.format)
    is_regular = parts.continuation.regular and messages.is_complete
    if not is_regular or dialects.get_dialect(parts.stored_format).name != dialect.name:
        return None
    whole = messages.joined
    if parts.continuation.open_calls:
        results = missing_results(
            messages.newest_response,
            parts.continuation,
            format=dialect.name,
            capabilities=parts.capabilities,
        )
        if results is None:
            return None
        added = list(map(bodies.json_bytes, results))
        whole = whole.append(added, [Role.USER] * len(added), dialects.is_unsigned)
    stored = StoredPrompt(messages=whole, system=parts.system, tools=parts.tools)
    joined = dialect.join_stored(stored, parts.capabilities)
    return None if joined is None else {name: orjson.Fragment(data) for name, data in joined.items()}
