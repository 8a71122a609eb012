"""Detect secrets in the input and output of tools: SQL, Kubernetes, clouds, Git remotes; and in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from redaction.files import Setting, is_encoded_secret, is_password, setting_rules
from redaction.shape import is_example, is_mixed, looks_like_password, looks_random
from redaction.spans import Rule, Span, compiled

#: Blanks and quotes of JSON, also of JSON in a string.
_S, _Q = r"(?:\s|\\+[nrt])*", r"\\*\""
_COLON, _COMMA = rf"{_Q}{_S}:{_S}", rf"{_Q}{_S},{_S}"
_VALUE = rf"{_Q}([^\"\\\n]{{6,}})"

_SQL_VALUE = r"N?\\*[\"']([^\"'\\\n]{8,200})\\*[\"']"

_MARK = r"(?:\*\*|__|<b>|<strong>|\|[ \t]*)"
_MARK_END = r"(?:\*\*|__|</b>|</strong>|[ \t]*\|)"

#: Characters in the names of algorithms and formats, such as PBKDF2-SHA256, with which prose describes passwords.
_TECHNICAL = re.compile(r"[-._/]")
_DIGITS = re.compile(r"\d.*\d")
_SYMBOL = re.compile(r"[^\w\s]")


def _is_noted_password(value: str) -> bool:
    """Return whether a value in Markdown is a password, not a word that describes passwords."""
    if looks_random(value):
        return True
    is_strong = value.lower() != value != value.upper() or _SYMBOL.search(value)
    return (
        bool(is_strong and _DIGITS.search(value))
        and looks_like_password(value)
        and not _TECHNICAL.search(value)
    )


def _is_token(value: str) -> bool:
    return is_mixed(value) and not is_example(value)


SETTINGS = (
    Setting(
        kind="sql-password",
        pattern=rf"\b(?:IDENTIFIED +(?:WITH +\S+ +)?BY|(?i:(?:create +user|alter +user|grant)\b[^;]{{0,300}}?\sidentified +(?:with +\S+ +)?by)) +(?i:password +)?{_SQL_VALUE}",
        anchor=r"(?i)identified +(?:with +\S+ +)?by +(?:password +)?\\*[\"']",
        accepts=is_password,
    ),
    Setting(
        kind="sql-password",
        pattern=rf"(?i)\b(?:(?:create|alter)\s+(?:user|role|login|group)\b[^;]{{0,300}}?|set\s+password\s+for\b[^;=]{{0,100}}=|options\s*\([^;)]{{0,200}}?)\s*\bpassword\s*[( ]\s*{_SQL_VALUE}",
        anchor=r"(?i)password[ (]+N?\\*[\"']",
        accepts=is_password,
    ),
    Setting(
        kind="sql-password",
        pattern=rf"(?i)\bset\s+password\b[^;=]{{0,100}}=\s*{_SQL_VALUE}",
        anchor=r"(?i)set +password ",
        accepts=is_password,
    ),
    Setting(
        kind="url-password",
        pattern=r"https?:\\*/\\*/([A-Za-z0-9_-]{16,255})(?::|:x-oauth-basic)?@[\w\[]",
        anchor=r"https?:\\*/\\*/[A-Za-z0-9_-]+(?::|:x-oauth-basic)?@[\w\[]",
        accepts=looks_random,
    ),
    Setting(
        kind="credential",
        pattern=rf"(?i){_MARK}(?:[\w ]{{0,30}}[ _])?(?:password|passphrase|api[ _-]?key|secret(?:[ _-]key)?|token):?{_MARK_END}[ \t]*:?[ \t]*`?([^\s`|*<>\"']{{8,200}})[ \t]*(?:[`|*<]|\\*\r?\n|\\+n|\z)",
        anchor=rf"(?i)(?:password|passphrase|api[ _-]?key|secret|secret[ _-]key|token):?{_MARK_END}[ \t]*:?[ \t]*`?[^\s`|*<]",
        accepts=_is_noted_password,
    ),
    Setting(
        kind="aws-parameter",
        pattern=rf"\"SecureString{_COMMA}{_Q}Value{_COLON}{_VALUE}",
        anchor=rf"SecureString{_COMMA}{_Q}Value",
    ),
    Setting(
        kind="aws-parameter",
        pattern=r"\bput-parameter\b(?=[^\n]{0,500}SecureString)[^\n]{0,500}?\s--value[ =][\"']?([^\s\"']{6,})",
        anchor=r"put-parameter ",
    ),
    Setting(
        kind="aws-secret-key",
        pattern=r"\bconfigure\s+set\s+\S*(?:aws_secret_access_key|aws_session_token)\s+[\"']?([A-Za-z0-9/+=]{30,})",
        anchor=r"(?:secret_access_key|session_token) +\\*[\"']?[A-Za-z0-9/+=]",
        accepts=_is_token,
    ),
    Setting(
        kind="terraform-output",
        pattern=rf"\"sensitive{_COLON}true{_S},{_S}(?:{_Q}type{_COLON}{_Q}\w+{_COMMA})?{_Q}value{_COLON}{_VALUE}",
        anchor=rf"sensitive{_COLON}true",
    ),
    Setting(
        kind="azure-secret",
        pattern=rf"vault\.azure\.net/secrets/[^\"\\]*{_COMMA}(?:[^{{}}]|\{{[^{{}}]*\}}){{0,600}}?{_Q}value{_COLON}{_VALUE}",
        anchor=r"vault\.azure\.net/secrets/",
    ),
    Setting(
        kind="azure-storage-key",
        pattern=rf"\"keyName{_COLON}[^{{}}]{{0,300}}?{_Q}value{_COLON}{_Q}([A-Za-z0-9+/]{{86}}==)",
        anchor=rf"keyName{_COLON}",
    ),
    Setting(
        kind="azure-sas",
        pattern=r"(?:logic\.azure\.com|powerplatform\.com)[^\s\"']{0,400}?[?&]sig=([A-Za-z0-9_-]{43})",
        anchor=r"logic\.azure\.com|powerplatform\.com",
    ),
    Setting(
        kind="kubernetes-secret",
        pattern=r"--from-literal[= ][\"']?[\w.-]*(?i:passw|pwd|secret|token|key)[\w.-]*=[\"']?([^\s\"']{6,})",
        anchor="--from-literal",
        accepts=is_password,
    ),
    Setting(
        kind="npm-token",
        pattern=r":_authToken\s+[\"']?([A-Za-z0-9._~+/=-]{16,400})",
        anchor=r":_authToken(?:\s|\\t)",
        accepts=_is_token,
    ),
    Setting(
        kind="command-password",
        pattern=r"\bcurl\s[^\n]{0,400}?(?:-[sSkLfiv]{0,6}u|--user)[ =]?[\"']?([A-Za-z0-9_-]{16,255}):(?:[\"'\s]|\z)",
        anchor=r"(?:-[sSkLfiv]*u|--user)[ =\\\"']+[A-Za-z0-9_-]+:(?:[\s\\\"']|\z)",
        accepts=looks_random,
    ),
    Setting(
        kind="telegram-token",
        pattern=r"/bot(\d{8,10}:[A-Za-z0-9_-]{35})",
        anchor=r"/bot\d+:",
        accepts=looks_random,
    ),
    Setting(
        kind="credential",
        pattern=r"\bAPP_KEY=[\"']?base64:([A-Za-z0-9+/]{43}=)",
        anchor=r"APP_KEY=\\*[\"']?base64:",
    ),
    Setting(
        kind="credential",
        pattern=r"(?i)\bX-(?:JFrog-Art-Api|Honeycomb-Team)[\"']?\s*[:=]\s*[\"']?([A-Za-z0-9_-]{20,200})",
        anchor=r"(?i)x-(?:jfrog-art-api|honeycomb-team)",
        accepts=looks_random,
    ),
)

#: In the JSON of manifests: a kind, the data of a secret, and a value of it.
_KIND = compiled(rf"\"kind{_COLON}{_Q}(\w+)\\*\"")
_DATA = compiled(rf"\"(?:data|stringData){_COLON}\{{([^{{}}]*)")
_MEMBER = compiled(rf"\"[\w.-]+{_COLON}{_Q}([^\"\\]{{6,}})")
_SECRET_ANCHOR = rf"kind\\+\"{_S}:{_S}\\+\"Secret\\"


def tool_rules() -> Iterator[Rule]:
    yield from setting_rules(SETTINGS)
    yield Rule(kind="kubernetes-secret", anchor=_SECRET_ANCHOR, find=_kubernetes_secrets)


def _kubernetes_secrets(text: str) -> Iterator[Span]:
    """Yield the values of `data` and `stringData` next to the kind Secret. kubectl prints `data` first."""
    kinds = [(match.start(), match[1] == "Secret") for match in _KIND.finditer(text)]
    number = 0
    for data in _DATA.finditer(text):
        while number < len(kinds) and kinds[number][0] < data.start():
            number += 1
        if any(is_secret for _, is_secret in kinds[max(0, number - 1) : number + 1]):
            for member in _MEMBER.finditer(data[1]):
                if is_encoded_secret(member[1]):
                    start, end = member.span(1)
                    yield data.start(1) + start, data.start(1) + end
