"""Detect secrets by the syntax of configuration files: .netrc, kubeconfig, Terraform, XML, cookies."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from redaction.shape import is_mixed, is_typed_secret, looks_like_password, looks_random
from redaction.spans import Rule, Span, compiled

_NAMES = r"(?:password|passwd|passphrase|passcode|secret|token|api[_.-]?key|access[_.-]?key|private[_.-]?key|pwd|pass)"


def is_basic_authentication(value: str) -> bool:
    """Return whether the value is base64 of `user:password`."""
    try:
        user, separator, password = base64.b64decode(value, validate=True).decode("ascii").partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return False
    return bool(user and separator) and len(password) > 3 and password.isprintable()


def is_encoded_secret(value: str) -> bool:
    """Return whether the value is base64 of a string that is not an example."""
    try:
        decoded = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return looks_random(value)
    return is_typed_secret(decoded)


def is_password(value: str) -> bool:
    return is_typed_secret(value) and (looks_like_password(value) or looks_random(value))


def _is_session(value: str) -> bool:
    return len(value) >= 16 and is_mixed(value) and is_typed_secret(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A place of a secret in a file: its pattern (the secret is its group) and anchor."""

    kind: str
    pattern: str
    anchor: str
    accepts: Callable[[str], bool] = is_typed_secret


SETTINGS = (
    Setting(
        kind="netrc-password",
        pattern=r"(?:\bmachine\s+\S+|\bdefault)\s+(?:login\s+\S+\s+)?(?:account\s+\S+\s+)?password\s+(\S{3,200})",
        anchor=r"(?:machine(?: |\\t)+[^\s\\]+|default)(?:\s|\\[nrt])+(?:login|account|password)",
    ),
    Setting(
        kind="pgpass-password",
        pattern=r"(?m)(?:^|[\"'\s])[\w.*-]+:(?:\d{4,5}|\*):[\w.*-]+:[\w.*-]+:([^\s:\"'\\]{6,200})",
        anchor=r"[\w*]:(?:\d\d\d\d\d?|\*):[\w.*-]+:[\w.*-]+:[^\s:\"'\\]",
        accepts=is_password,
    ),
    Setting(
        kind="kubeconfig-key",
        pattern=r"client-key-data[\"']?:[\s\"']*([A-Za-z0-9+/]{40,}={0,2})",
        anchor=r"client-key-data",
    ),
    Setting(
        kind="docker-auth",
        pattern=r"(?:\b_auth\s*=\s*|[\"'](?:auth|identitytoken|_auth)\\*[\"']\s*:\s*\\*)[\"']?([A-Za-z0-9+/_-]{8,}={0,2})",
        anchor=r"_auth(?: |\\t)*=|(?:auth|identitytoken)\\*[\"'](?:\s|\\[nrt])*:",
        accepts=is_basic_authentication,
    ),
    Setting(
        kind="credential",
        pattern=rf"(?i)<(?:\w+:)?[\w.-]*{_NAMES}>([^<>\s]{{6,300}})</",
        anchor=rf"(?i){_NAMES}(?:>|\\u003e)[^<>\s\\]",
        accepts=is_password,
    ),
    Setting(
        kind="credential",
        pattern=rf"(?i)(?:key|name|property)\s*=\s*[\"'][\w:. -]*{_NAMES}[\"']\s+(?:type=\S+\s+)?value\s*=\s*[\"']([^\"'\n]{{6,300}})[\"']",
        anchor=rf"(?i){_NAMES}\\?[\"'](?:\s|\\[nrt])+(?:type=\S+\s+)?value",
        accepts=is_password,
    ),
    Setting(
        kind="terraform-default",
        pattern=rf"(?i)\bvariable\s+\"[\w-]*{_NAMES}[\w-]*\"\s*\{{[^{{}}]*?\bdefault\s*=\s*\"([^\"\n]{{6,300}})\"",
        anchor=rf"(?i)variable(?: |\\t)+\\?\"[\w-]*{_NAMES}",
        accepts=is_password,
    ),
    Setting(
        kind="powershell-password",
        pattern=r"(?i)ConvertTo-SecureString\s+(?:-AsPlainText\s+|-Force\s+|-String\s+)*[\"']?([^\s\"']{4,200}|[^\"'\n]{4,200}[\"'])",
        anchor=r"(?i)ConvertTo-SecureString",
    ),
    Setting(
        kind="powershell-password",
        pattern=r"(?i)\s-(?:\w*password|passphrase|\w*secret|apikey|accesstoken|nugetapikey)\s+[\"']?([^\s\"'$(-][^\s\"']{5,200})",
        anchor=r"(?i)\s-(?:\w*password|passphrase|\w*secret|apikey|accesstoken|nugetapikey)\s",
        accepts=is_password,
    ),
    Setting(
        kind="pre-shared-key",
        pattern=r"(?i)\b(?:psk|wpa[_-]?passphrase|wpa[_-]psk|sae[_-]password|pre-?shared-?key|wep[_-]?key\d?)[\"']?\s*(?:[=:]\s*|\s+(?:ascii-text\s+|local\s+|remote\s+)?)[\"']?([^\s\"';,]{8,64})",
        anchor=r"(?i)(?:psk|passphrase|sae[_-]password|shared-?key|wep[_-]?key\d?)[\\\"']*(?: |\\t)*(?:[=: ]|\\t)",
        accepts=is_password,
    ),
    Setting(
        kind="session-cookie",
        pattern=r"(?i)\b(?:PHPSESSID|JSESSIONID|ASP\.NET_SessionId|\.AspNetCore\.[\w.]+|\.ASPXAUTH|connect\.sid|laravel_session|ci_session|_gitlab_session|user_session|(?:__Secure-|__Host-)?(?:next-auth|authjs)\.session-token|wordpress_logged_in_\w+|ssm_au_c|sb-access-token|remember_token)[\"']?\s*[=:]\s*[\"']?([\w%.~+/=|-]{16,4000})",
        anchor=r"(?:PHPSESSID|JSESSIONID|NET_SessionId|AspNetCore|ASPXAUTH|connect\.sid|laravel_session|ci_session|gitlab_session|user_session|session-token|wordpress_logged_in|ssm_au_c|sb-access-token|remember_token)[\w.]*[\\\"']*\s*[=:]",
        accepts=_is_session,
    ),
    Setting(  # a line of a cookie file: domain, flag, path, secure, expiry, name, value
        kind="session-cookie",
        pattern=r"(?m)(?:^|#HttpOnly_)\S+\t(?:TRUE|FALSE)\t\S+\t(?:TRUE|FALSE)\t\d+\t\S*(?i:sess|auth|token|sid|login|remember)\S*\t(\S{16,4000})",
        anchor=r"\\t(?:TRUE|FALSE)\\t",
        accepts=_is_session,
    ),
    Setting(
        kind="connection-password",
        pattern=r"(?i)(?:[;&?]\s*|\b(?:host|hostaddr|user|dbname|port|server|uid|user id)=[^\s;=]+[ ;]\s*)(?:password|pwd|passwd|sharedaccesskey|accountkey)\s*=\s*[\"']?([^\s;\"'&]{5,200})",
        anchor=r"(?i)(?:[;&? ]|u0026)\s*(?:password|pwd|passwd|sharedaccesskey|accountkey)\s*=",
    ),
    Setting(
        kind="connection-password",
        pattern=r"(?i)\b(?:password|pwd)\s*=\s*([^\s;\"'&]{5,200});\s*(?:server|host|data source|user|uid|database|initial catalog|port|encrypt|trusted|ssl)",
        anchor=r"(?i)(?:password|pwd)\s*=\s*[^\s;\"'&]+;",
    ),
    Setting(
        kind="ssh-config-password",
        pattern=r"(?im)^[ \t]*host(?:name)?[ \t]+\S+\n(?:[ \t]+[^\n]*\n)*?[ \t]+#?[ \t]*pass(?:word|phrase)?[ \t]*[=: ][ \t]*(\S{4,200})",
        anchor=r"(?i)\\n(?: |\\t)+#?(?: |\\t)*pass(?:word|phrase)?(?: |\\t)*[=: ](?: |\\t)*[^\s\\]",
    ),
    Setting(
        kind="credential",
        pattern=r"(?m)\b(?:[A-Z][A-Z0-9_]*_PASS|SSHPASS|ansible_\w*pass)[\"']?\s*[=:]\s*[\"']?([^\s\"'#]{6,200})",
        anchor=r"(?:_PASS|SSHPASS|ansible_\w*pass)[\\\"']*\s*[=:]",
        accepts=is_password,
    ),
    Setting(
        kind="mailgun-key",
        pattern=r"(?m)(?:^|[\s\"'`=:(,>])(key-[0-9a-f]{32})\b",
        anchor=r"key-[0-9a-f]{16}",
    ),
)

_COOKIES = compiled(
    r"(?i)\b(?:set-)?cookie[\\\"']*\s*[:=,(]\s*[\\\"']*([^\n\"']{10,4000})|\s(?:-b|--cookie)[ =][\\\"']*([^\n\"']{10,4000})"
)
_COOKIE = re.compile(
    r"(?:\A|;\s*)[\w.-]*(?:sess|auth|token|sid|login|remember|jwt|identity)[\w.-]*=([\w%.~+/=|:-]{16,})",
    re.IGNORECASE,
)
_HARMLESS_COOKIE = re.compile(r"csrf|xsrf", re.IGNORECASE)
_COOKIES_ANCHOR = r"(?i)cookie[\\\"']*\s*[:=,(]\s*[\\\"']*[\w.-]+=|(?:-b|--cookie)[ =][\\\"']*[\w.-]+="

_KUBERNETES = compiled(r"(?m)^[ \t-]*kind:[ \t]*[\"']?Secret[\"']?[ \t]*$")
_DATA = re.compile(r"^[ \t]*(?:data|stringData):[ \t]*\n", re.MULTILINE)
_DATA_LINE = re.compile(r"[ \t]+[\w.-]+:[ \t]*[\"']?(?P<value>[^\s\"'|>]+)[\"']?[ \t]*(?:\n|\Z)")

#: Maximum distance of a manifest's values from its kind, and minimum length of a value (characters).
_LONGEST_MANIFEST, _SHORTEST_VALUE = 20_000, 6


#: The base64 of `-----BEGIN `, and of the start of a Google service account, with and without blanks.
_ENCODED = (
    r"(?:LS0tLS1CRUdJTi|eyJ0eXBlIjoic2VydmljZV9hY2NvdW50"
    r"|(?:ewogICJ0eXBlIjog|eyJ0eXBlIjog)InNlcnZpY2VfYWNjb3Vud)"
)
_ENCODED_ANCHOR = "LS0tLS1CRUdJTi|c2VydmljZV9hY2NvdW50|InNlcnZpY2VfYWNjb3Vud"
_ENCODED_LINES = (
    r"[A-Za-z0-9+/]{40,}(?:(?:\s|\\+[nr])+[A-Za-z0-9+/]{40,})*(?:(?:\s|\\+[nr])+[A-Za-z0-9+/]+={1,2}|={0,2})"
)
_ENCODED_RE2 = compiled(_ENCODED + _ENCODED_LINES)

#: Characters at the start of an encoded key that contain its kind, a multiple of four within the first line.
_ENCODED_HEAD = 52


def file_rules() -> Iterator[Rule]:
    yield from setting_rules(SETTINGS)
    yield Rule(kind="session-cookie", anchor=_COOKIES_ANCHOR, find=_cookies)
    yield Rule(kind="private-key", anchor=_ENCODED_ANCHOR, find=_encoded_keys)
    yield Rule(kind="kubernetes-secret", anchor=r"kind: *[\\\"']*Secret", find=_kubernetes_secrets)


def setting_rules(settings: Iterable[Setting]) -> Iterator[Rule]:
    for setting in settings:
        yield Rule(kind=setting.kind, anchor=setting.anchor, find=_finder(setting))


def _finder(setting: Setting) -> Callable[[str], Iterator[Span]]:
    regex = compiled(setting.pattern)

    def find(text: str) -> Iterator[Span]:
        for match in regex.finditer(text):
            start, end = match.span(1)
            if setting.accepts(text[start:end]):
                yield start, end

    return find


def _cookies(text: str) -> Iterator[Span]:
    for header in _COOKIES.finditer(text):
        start, end = header.span(1) if header[1] else header.span(2)
        for cookie in _COOKIE.finditer(text[start:end]):
            if not _HARMLESS_COOKIE.search(cookie[0].partition("=")[0]) and _is_session(cookie[1]):
                yield start + cookie.start(1), start + cookie.end(1)


def _encoded_keys(text: str) -> Iterator[Span]:
    """Yield private keys in base64, as in CI variables. Certificates have the same start."""
    for match in _ENCODED_RE2.finditer(text):
        start, end = match.span()
        head = base64.b64decode(text[start : start + _ENCODED_HEAD])
        if b"PRIVATE KEY" in head or b"service_account" in head:
            yield start, end


def _kubernetes_secrets(text: str) -> Iterator[Span]:
    """Yield the values of `data` and `stringData` in manifests of kind Secret."""
    end = 0
    for kind in _KUBERNETES.finditer(text):
        if kind.start() < end:
            continue
        start = max(end, text.rfind("\n---", end, kind.start()), kind.start() - _LONGEST_MANIFEST)
        end = text.find("\n---", kind.end(), kind.end() + _LONGEST_MANIFEST)
        end = end if end >= 0 else min(len(text), kind.end() + _LONGEST_MANIFEST)
        for data in _DATA.finditer(text, start, end):
            position = data.end()
            while line := _DATA_LINE.match(text, position, end):
                if len(line["value"]) >= _SHORTEST_VALUE and is_encoded_secret(line["value"]):
                    yield line.span("value")
                position = line.end()
