"""Redact JSON as text: only string literals that contain a secret are changed."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from compaction.jsontext import dumps_bytes
from redaction.arguments import ARGUMENTS, MOST_ARGUMENTS, argument_passwords, is_program
from redaction.credentials import is_argument_name, is_pair, named_secret
from redaction.engine import encodable, redact_text, replaced, rules_to_apply
from redaction.invisible import visible
from redaction.placeholders import Finding
from redaction.project import Redaction
from redaction.shape import is_mixed
from redaction.spans import Rule, Span

JSON = Any

#: A string literal, and the colon that makes it a key.
_LITERAL = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(\s*+:)?', re.DOTALL)

#: Maximum characters of a value whose name makes it a secret.
_LONGEST_VALUE = 500

#: The start or end of an object or a list.
_BRACKET = re.compile(r"[][{}]")


def redact_bytes(raw: bytes, *, redaction: Redaction) -> tuple[bytes, tuple[Finding, ...]]:
    """Return JSON bytes without secrets, and the findings. Never raises.

    Returns the same object if there are none. With custom patterns, every string is decoded, because they
    have no anchor that also matches escaped text.
    """
    custom = redaction.rules
    rules, hidden = rules_to_apply(raw)
    if not rules and not hidden and not custom:
        return raw, ()
    text = raw.decode("utf-8", "surrogateescape")
    if hidden:
        rules, _ = rules_to_apply(_LITERAL.sub(_plain, text).encode("utf-8", "surrogatepass"))
    if not rules and not custom:
        return raw, ()
    found: Counter[str] = Counter()
    literals = _literals(text, _visible if hidden else _decoded)
    redacted = _redacted(text, literals, (*rules, *custom), redaction.key, found)
    if not found:
        return raw, ()
    return redacted.encode("utf-8", "surrogateescape"), _findings(found)


def redact(value: JSON, *, redaction: Redaction) -> tuple[JSON, tuple[Finding, ...]]:
    """Return parsed JSON without secrets, and the findings. Redacts all strings, including keys."""
    raw, findings = redact_bytes(dumps_bytes(value), redaction=redaction)
    if not findings:
        return value, ()
    return json.loads(raw), findings


def _findings(found: Counter[str]) -> tuple[Finding, ...]:
    return tuple(Finding(kind=kind, count=count) for kind, count in sorted(found.items()))


@dataclass(slots=True)
class _Literal:
    """A string literal of the JSON text: its span without quotes, its value and its replacement.

    The name of a value is its key, or in a list of arguments the option before it.
    """

    start: int
    end: int
    text: str
    name: str | None
    new: str


def _redacted(
    text: str, literals: Sequence[_Literal], rules: Sequence[Rule], key: bytes, found: Counter[str]
) -> str:
    _name_values(text, literals)
    for literal in literals:
        literal.new = _redacted_literal(literal, rules, key, found)
    if ARGUMENTS in rules:
        _redact_arguments(text, literals, key, found)
    _clear_signatures(text, literals)
    pieces, end = [], 0
    for literal in literals:
        if literal.new is not literal.text:
            pieces += [text[end : literal.start], _encoded(literal.new)]
            end = literal.end
    return "".join([*pieces, text[end:]])


def _literals(text: str, decode: Callable[[str], str]) -> list[_Literal]:
    literals, name = [], None
    for match in _LITERAL.finditer(text):
        decoded = decode(match[1])
        is_key = match[2] is not None
        literals.append(_Literal(*match.span(1), decoded, None if is_key else name, decoded))
        name = decoded if is_key or is_argument_name(decoded) else None
    return literals


def _name_values(text: str, literals: Sequence[_Literal]) -> None:
    """Give the value of `{"name": "DB_PASSWORD", "value": "…"}` its real name."""
    for index in range(3, len(literals)):
        name, key, value = literals[index - 2 : index + 1]
        if (
            name.name is not None
            and value.name is key.text
            and is_pair(name.name, value.name)
            and not _BRACKET.search(text, name.end, key.start)
        ):
            value.name = name.text


def _redacted_literal(literal: _Literal, rules: Sequence[Rule], key: bytes, found: Counter[str]) -> str:
    new = redact_text(literal.text, rules, key=key, found=found)
    if new is not literal.text or literal.name is None:
        return new
    named = named_secret(literal.name, literal.text) or _assigned_secret(literal, rules)
    return replaced(literal.text, [named], key=key, found=found) if named else new


def _redact_arguments(text: str, literals: Sequence[_Literal], key: bytes, found: Counter[str]) -> None:
    """Redact the passwords in lists such as `["sshpass", "-p", "…"]`."""
    end = 0
    for index, program in enumerate(literals):
        if index < end or not is_program(program.text):
            continue
        arguments = [program, *islice(_siblings(text, literals, index), MOST_ARGUMENTS - 1)]
        end = index + len(arguments)
        for number, span in argument_passwords([encodable(argument.text) for argument in arguments]):
            argument = arguments[number]
            if argument.new is argument.text:
                argument.new = replaced(argument.text, [(span, ARGUMENTS.kind)], key=key, found=found)


def _assigned_secret(literal: _Literal, rules: Sequence[Rule]) -> tuple[Span, str] | None:
    """Return the secret if the value is one together with its name: `{"DATADOG_KEY": "…"}`."""
    if not is_mixed(literal.text) or len(literal.text) > _LONGEST_VALUE or " " in literal.text:
        return None
    name = f'"{literal.name}":"'
    scanned = encodable(name + literal.text)
    for rule in rules:
        for start, end in rule.find(scanned):
            if start >= len(name):
                return (start - len(name), end - len(name)), rule.kind
    return None


def _clear_signatures(text: str, literals: Sequence[_Literal]) -> None:
    """Clear the signature of a thinking block whose text has changed.

    The provider would reject the changed text. Thinking blocks without a signature are excluded from prompts.
    """
    if not any(map(_is_changed_thinking, literals)):
        return
    start = 0
    while start < len(literals):
        siblings = [literals[start], *_siblings(text, literals, start)]
        start += len(siblings)
        if any(map(_is_changed_thinking, siblings)):
            for literal in siblings:
                if literal.name == "signature":
                    literal.new = ""


def _is_changed_thinking(literal: _Literal) -> bool:
    return literal.name == "thinking" and literal.new is not literal.text


def _siblings(text: str, literals: Sequence[_Literal], index: int) -> Iterator[_Literal]:
    """Yield the literals that follow the one with this index, up to a bracket."""
    for following in range(index + 1, len(literals)):
        if _BRACKET.search(text, literals[following - 1].end, literals[following].start):
            return
        yield literals[following]


def _plain(match: re.Match[str]) -> str:
    """Return the literal without invisible characters, and with only the escapes that JSON requires."""
    return f'"{_encoded(_visible(match[1]))}"{match[2] or ""}'


def _decoded(body: str) -> str:
    if "\\" not in body:
        return body
    try:
        return json.loads(f'"{body}"', strict=False)  # type: ignore[no-any-return]
    except ValueError:
        return body


def _visible(body: str) -> str:
    return visible(_decoded(body))


def _encoded(text: str) -> str:
    """Return a string as JSON without quotes, with only the necessary escapes and lone surrogates escaped."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(text)[1:-1]
    return json.dumps(text, ensure_ascii=False)[1:-1]
