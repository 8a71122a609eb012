"""Detect secrets by their context: assignments to credential names, headers, connection strings.

Agents read a lot of code, which contains many false positives: `password = os.environ["X"]`, `token: str`,
`api_key="test-key"`. The form of the value decides (see `shape`). In data (an environment file, a JSON
object), a typical password is sufficient; in code, the value must look random.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from itertools import chain, pairwise

from redaction.shape import is_example, is_mixed, is_typed_secret, looks_like_password, looks_random
from redaction.spans import Rule, Span, compiled

_PASSWORDS = r"(?:passw(?:or)?d|passphrase|passwd|pwd)"
_KEYS = (
    r"(?:secret(?:[_-]?(?:(?:access[_-]?)?key|string|binary))?(?:[_-]base)?|credentials?"
    r"|(?:api|access|auth|private|account|service|master|encryption"
    r"|signing|client|shared|storage|iam|cloudant|softlayer|subscription|functions|application)[_-]?key)"
)
_NAMES = rf"(?:{_PASSWORDS}|{_KEYS}|token)"

#: Between a quoted name and a quoted value in a list of arguments, and before the next item of a YAML list.
_COMMA = r"\\*[\"'][ \t]*,(?:\s|\\+[nrt])*"
_ITEM = r"\\*[\"']?[ \t]*(?:\r?\n|\\+n)[ \t]*-[ \t]"

#: Name, closing quotes and assignment operator or comma. Or what separates a command-line flag from its
#: argument: a space, or a new item of a list. The value follows.
_ASSIGNED = rf"(?i)({_NAMES})(?:([\\\"'`\]]*[ \t]*(?::=|=>|=+|:)[ \t]*|{_COMMA})|[ \t]+|{_ITEM}+)"

_ASSIGNED_ANCHOR = (
    rf"(?i){_NAMES}(?:[\\\"'`\]]*[ \t]*[:=]|{_COMMA}b?[\\\"'])|--[\w.-]*{_NAMES}(?:[ \t]|{_ITEM})"
)

#: A value with quotes, which may have a prefix (`b"…"`, `@"…"`, `$'…'`), with escaped quotes, or without.
_PREFIX = r"(?:[@$]|[bnru]{1,2})?"
_QUOTES = "\"'`"
_QUOTED = re.compile(
    rf"{_PREFIX}(?P<quote>[\"'`])(?P<value>(?:(?!(?P=quote))[^\\\n]|\\.){{1,500}})(?P=quote)", re.IGNORECASE
)
_ESCAPED_QUOTED = re.compile(rf"{_PREFIX}\\+[\"'`](?P<value>[^\"'`\\\s]{{1,500}})", re.IGNORECASE)
_BARE = re.compile(r"(?:[|>][+-]?[ \t]*(?:\r?\n|\\+n)[ \t]+)?(?P<value>[^\s\"'`\\,;|&]{1,500})")

#: Maximum characters of a name before the matching word.
_LONGEST_NAME = 48
_NAME_BEFORE = re.compile(r"(?:--?)?[\w.-]*\Z")

#: Names of tokens that are not secrets: pagination, CSRF, and tokens of text.
_HARMLESS_TOKEN = re.compile(
    r"(?:page|next|prev|cursor|contin\w*|csrf|xsrf|sync|public|max|num|count|limit|stop|mask|hash|unk)[\w.-]*token\Z",
    re.IGNORECASE,
)
_PASSWORD_NAME = re.compile(rf"(?:{_PASSWORDS}|secret[_-]?string)\Z", re.IGNORECASE)

_COLON_OF_KEY = re.compile(r"\\*[\"']\s*:")
_ENVIRONMENT_NAME = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_FULL_NAME = re.compile(rf"[\w.-]{{0,{_LONGEST_NAME}}}?({_NAMES})\Z", re.IGNORECASE)


#: An option, or the name of a header.
_ARGUMENT_NAME = re.compile(r"--?[a-z][\w.-]{2,48}|(?:proxy-)?authorization", re.IGNORECASE)


def credential_rules() -> Iterator[Rule]:
    yield Rule(kind="authorization", anchor=_AUTHORIZATION_ANCHOR, find=_authorizations)
    yield Rule(kind="url-password", anchor=_URL_ANCHOR, find=_url_passwords)
    yield Rule(kind="credential", anchor=_ASSIGNED_ANCHOR, find=_assignments)
    yield Rule(kind="credential", anchor=_PAIR_ANCHOR, find=_pairs)


def named_secret(name: str, value: str) -> tuple[Span, str] | None:
    """Return the secret in the value of a JSON member, such as `{"password": …}`, and its kind."""
    if name.lower() in ("authorization", "proxy-authorization"):
        match = _SCHEME_VALUE.match(value)
        return (match.span(1), "authorization") if match and _is_credential(match) else None
    word = _FULL_NAME.match(name)
    if word is None or _HARMLESS_TOKEN.search(name) or " " in value or "\n" in value:
        return None
    return ((0, len(value)), "credential") if _is_secret(word[1], value, data=True) else None


def is_argument_name(argument: str) -> bool:
    """Return whether an argument in a list, such as `--password`, gives the following one its meaning."""
    return _ARGUMENT_NAME.fullmatch(argument) is not None


_ASSIGNED_RE2 = compiled(_ASSIGNED)
_ASSIGNED_RE = re.compile(_ASSIGNED)
_DIGIT = re.compile(r"[0-9]")

#: After this many assignments that are closer together than this (characters), Python's `re` searches on: it
#: takes longer to find a match, but a fraction of the time to return it.
_MANY, _DENSE = 500, 100

#: Maximum characters from an assignment to the end of its value.
_VALUE_REACH = 510


def _assigned(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the assignments whose value may contain a digit (all secrets do), and the start of the next."""
    digit = 0
    for match, following in pairwise(chain(_all_assigned(text), (None,))):
        assert match is not None
        end = match.end()
        if digit < end:
            found = _DIGIT.search(text, end)
            digit = found.start() if found else len(text) + _VALUE_REACH
        if digit - end < _VALUE_REACH:
            yield match, following.start() if following else len(text)


def _all_assigned(text: str) -> Iterator[re.Match[str]]:
    end = 0
    for count, match in enumerate(_ASSIGNED_RE2.finditer(text), 1):
        yield match
        end = match.end()
        if count >= _MANY and end < count * _DENSE:
            break
    else:
        return
    yield from _ASSIGNED_RE.finditer(text, end)


def _assignments(text: str) -> Iterator[Span]:
    for match, following in _assigned(text):
        start, end = match.span()
        value = _value_at(text, end, following)
        if value is None or not is_mixed(text[slice(*value)]):
            continue  # first, because nearly all matches end here
        before = _NAME_BEFORE.search(text, max(0, start - _LONGEST_NAME), start)
        name = (before[0] if before else "") + match[1]
        operator = match[2] or ""
        is_list = "," in operator
        is_flag = name.startswith("-" if is_list else "--")
        if _HARMLESS_TOKEN.search(name) or not (operator or is_flag):
            continue
        if is_list and text[value[0] - 1] not in _QUOTES:
            continue
        data = (
            is_flag or _ENVIRONMENT_NAME.match(name) is not None or _COLON_OF_KEY.match(operator) is not None
        )
        if _is_secret(match[1], text[slice(*value)], data=data):
            yield value


def _value_at(text: str, start: int, following: int) -> Span | None:
    """Return the span of the value. Without quotes it ends before the following assignment."""
    match = _QUOTED.match(text, start) or _ESCAPED_QUOTED.match(text, start)
    match = match or _BARE.match(text, start, following)
    return match.span("value") if match else None


def _is_secret(word: str, value: str, *, data: bool) -> bool:
    """Return whether the value of a name ending in `word` is a secret. `data` is set outside of code."""
    return looks_random(value) or (data and bool(_PASSWORD_NAME.match(word)) and looks_like_password(value))


#: A name and its value as two members, such as environment variables in JSON or YAML: `name: …, value: …`.
_PAIR_NAMES = rf"(?:{_NAMES}|authorization)"
_PAIR_VALUE = r"[\\\"'`]*[ \t]*,?(?:\s|\\+[nrt])*[\\\"'`]*value[\\\"'`]*[ \t]*:[ \t]*"
_PAIR_ANCHOR = rf"(?i){_PAIR_NAMES}{_PAIR_VALUE}"
_PAIR_RE2 = compiled(
    rf"(?i)\b(?:name|key)[\\\"'`]*[ \t]*:[ \t]*[\\\"'`]*"
    rf"([\w.-]{{0,{_LONGEST_NAME}}}{_PAIR_NAMES}){_PAIR_VALUE}"
)


def _pairs(text: str) -> Iterator[Span]:
    for match in _PAIR_RE2.finditer(text):
        if (value := _value_at(text, match.end(), len(text))) is None:
            continue
        if (found := named_secret(match[1], text[slice(*value)])) is not None:
            (start, end), _ = found
            yield value[0] + start, value[0] + end


def is_pair(name: str, value_name: str) -> bool:
    """Return whether members with these names are the name of something and its value."""
    return name.lower() in ("name", "key") and value_name.lower() == "value"


_SCHEME = r"[a-z]{2,20}"
_BEARER = r"[A-Za-z0-9._~+/=-]{16,}"
_HEADER = rf"authorization[\\\"'`\]]*[ \t]*[:=,][ \t\\\"'`\[b]*(?:{_SCHEME}[ \t]+)?"
_AUTHORIZATION = rf"(?i)(?:{_HEADER}|\bbearer[ \t]+)({_BEARER})"
_AUTHORIZATION_ANCHOR = r"(?i)authorization[\\\"'`\]]*[ \t]*[:=,]|bearer[ \t]+[a-z0-9._~+/=-]{8}"
_AUTHORIZATION_RE2 = compiled(_AUTHORIZATION)
_SCHEME_VALUE = re.compile(rf"(?:{_SCHEME}[ \t]+)?({_BEARER})\Z", re.IGNORECASE)


def _authorizations(text: str) -> Iterator[Span]:
    for match in _AUTHORIZATION_RE2.finditer(text):
        if _is_credential(match):
            yield match.span(1)


def _is_credential(match: re.Match[str]) -> bool:
    """Return whether the value is a random token, or the user and password of HTTP basic authentication."""
    value = match[1]
    return looks_random(value) or (not is_example(value) and _is_basic(value))


def _is_basic(value: str) -> bool:
    try:
        decoded = base64.b64decode(value, validate=True)
    except binascii.Error:
        return False
    return decoded.isascii() and b":" in decoded


#: Some programs, such as PHP, escape slashes in JSON.
_SLASHES = r":\\*/\\*/"
_URL = rf"{_SLASHES}[^/\s:@\"'<>\\`]{{0,100}}:([^/\s@\"'<>\\`(){{}}|]{{4,100}})@[\w\[.-]"
_URL_ANCHOR = rf"{_SLASHES}[^/\s:@]*:[^/\s@]*@"
_URL_RE2 = compiled(_URL)
_URL_USER = re.compile(rf"{_SLASHES}([^:]*):\Z")


def _url_passwords(text: str) -> Iterator[Span]:
    for match in _URL_RE2.finditer(text):
        start, end = match.span(1)
        password, user = text[start:end], _URL_USER.search(text, max(0, start - 130), start)
        same = user is not None and user[1] == password
        if not same and is_typed_secret(password):
            yield start, end
