"""Redaction of JSON as text: only the string literals that hold a secret change, every other byte stays."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import orjson

from redaction.credentials import named_secret
from redaction.engine import redact_text, replaced, suspects
from redaction.placeholders import Finding
from redaction.project import Redaction
from redaction.spans import Rule

JSON = Any

#: A string literal, and the colon that makes it a key.
_LITERAL = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(\s*+:)?', re.DOTALL)

#: What begins or ends an object or a list.
_BRACKET = re.compile(r"[][{}]")


def redact_bytes(raw: bytes, *, key: Redaction) -> tuple[bytes, tuple[Finding, ...]]:
    """JSON bytes without secrets, and what was found. The same object where nothing was. Never raises.

    With patterns of a project every string is decoded, since these have no anchor that would also hold for
    escaped text.
    """
    own = key.rules
    rules, hidden = suspects(raw)
    if not rules and not hidden and not own:
        return raw, ()
    text = raw.decode("utf-8", "surrogateescape")
    if hidden:
        rules, _ = suspects(_LITERAL.sub(_plain, text).encode("utf-8", "surrogatepass"))
    if not rules and not own:
        return raw, ()
    found: Counter[str] = Counter()
    redacted = _redacted(text, (*rules, *own), key.key, found)
    if not found:
        return raw, ()
    return redacted.encode("utf-8", "surrogateescape"), _findings(found)


def redact(value: JSON, *, key: Redaction) -> tuple[JSON, tuple[Finding, ...]]:
    """The same for parsed JSON: every string, keys of objects included. The same object where it is clean."""
    raw, findings = redact_bytes(_json_bytes(value), key=key)
    if not findings:
        return value, ()
    return json.loads(raw), findings


def _findings(found: Counter[str]) -> tuple[Finding, ...]:
    return tuple(Finding(kind=kind, count=count) for kind, count in sorted(found.items()))


@dataclass(slots=True)
class _Literal:
    """A string literal of the JSON text: its span without quotes, its meaning, and what it is replaced by."""

    start: int
    end: int
    text: str
    name: str | None
    new: str


def _redacted(text: str, rules: Sequence[Rule], key: bytes, found: Counter[str]) -> str:
    literals = _literals(text)
    for literal in literals:
        literal.new = _redacted_literal(literal, rules, key, found)
    _unsign(text, literals)
    pieces, end = [], 0
    for literal in literals:
        if literal.new is not literal.text:
            pieces += [text[end : literal.start], _encoded(literal.new)]
            end = literal.end
    return "".join([*pieces, text[end:]])


def _literals(text: str) -> list[_Literal]:
    literals, name = [], None
    for match in _LITERAL.finditer(text):
        decoded = _decoded(match[1])
        is_key = match[2] is not None
        literals.append(_Literal(*match.span(1), decoded, None if is_key else name, decoded))
        name = decoded if is_key else None
    return literals


def _redacted_literal(literal: _Literal, rules: Sequence[Rule], key: bytes, found: Counter[str]) -> str:
    new = redact_text(literal.text, rules, key=key, found=found)
    if new is not literal.text or literal.name is None:
        return new
    named = named_secret(literal.name, literal.text)
    return replaced(literal.text, [named], key=key, found=found) if named else new


def _unsign(text: str, literals: Sequence[_Literal]) -> None:
    """Empties the signature of a thinking block whose text was changed.

    The provider signed the text and would refuse the changed one. Without a signature the block counts as
    broken, and broken thinking is left out of prompts.
    """
    for index, literal in enumerate(literals):
        if literal.name == "thinking" and literal.new is not literal.text:
            for sibling in chain(_siblings(text, literals[index:]), _siblings(text, literals[index::-1])):
                if sibling.name == "signature":
                    sibling.new = ""


def _siblings(text: str, literals: Sequence[_Literal]) -> Iterator[_Literal]:
    """From the first literal on, in either direction, those with no bracket between them."""
    for one, other in pairwise(literals):
        left, right = sorted((one, other), key=lambda literal: literal.start)
        if _BRACKET.search(text, left.end, right.start):
            return
        yield other


def _plain(match: re.Match[str]) -> str:
    """The literal with only those escapes that JSON needs."""
    return f'"{_encoded(_decoded(match[1]))}"{match[2] or ""}'


def _decoded(body: str) -> str:
    if "\\" not in body:
        return body
    try:
        return json.loads(f'"{body}"', strict=False)  # type: ignore[no-any-return]
    except ValueError:
        return body


def _encoded(text: str) -> str:
    """JSON of a text without its quotes; only what has to be escaped is, and lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(text)[1:-1]
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _json_bytes(value: JSON) -> bytes:
    """JSON of `value`. The standard library accepts what orjson refuses: integers over 64 bits."""
    try:
        return orjson.dumps(value)
    except (orjson.JSONEncodeError, TypeError):
        return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
