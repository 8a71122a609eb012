"""Detect PEM blocks, JWTs, and tokens with provider prefixes that detect-secrets does not support."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from detect_secrets.plugins.jwt import JwtTokenDetector

from redaction.shape import is_example, looks_random
from redaction.spans import Rule, Span, begins_word, compiled, tokens

_WORD = "[A-Za-z0-9]"
_NAME = "[A-Za-z0-9_-]"
_HEX = "[a-f0-9]"

#: Kind, prefix, and the set and number of the following characters. JSON escapes none of them.
PREFIXED = (
    ("anthropic-key", "sk-ant-", _NAME, "20,"),
    ("openai-key", "sk-(?:proj|svcacct|admin|None)-", _NAME, "20,"),
    ("openrouter-key", "sk-or-v1-", _HEX, "40,"),
    ("contextapp-key", "ctx_[0-9a-f]{8}_", _NAME, "32,"),
    ("github-token", "github_pat_", "[A-Za-z0-9_]", "22,"),
    ("npm-token", "npm_", _WORD, "36"),
    ("stripe-key", "(?:[rs]k_(?:live|test)|whsec)_", _WORD, "16,"),
    ("slack-token", r"xapp-\d-[A-Z0-9]+-\d+-", _HEX, "32,"),
    ("slack-token", "xox[abeoprs]-", "[A-Za-z0-9-]", "20,"),
    ("artifactory-key", "AKC", _WORD, "60,"),
    ("google-api-key", "AIza", _NAME, "35"),
    ("google-oauth-secret", "GOCSPX-", _NAME, "28"),
    ("google-oauth-token", r"ya29\.", _NAME, "20,"),
    ("azure-client-secret", r"[A-Za-z0-9_~.-]{3}\dQ~", "[A-Za-z0-9_~.-]", "31,34"),
    ("azure-sas", "sig=", "[A-Za-z0-9%]", "46,"),
    ("huggingface-token", "hf_", _WORD, "30,"),
    ("groq-key", "gsk_", _WORD, "40,"),
    ("xai-key", "xai-", _WORD, "40,"),
    ("perplexity-key", "pplx-", _WORD, "40,"),
    ("replicate-token", "r8_", _WORD, "37"),
    ("vault-token", r"hv[sbr]\.", _NAME, "24,"),
    ("digitalocean-token", "do[opr]_v1_", _HEX, "64"),
    ("docker-token", "dckr_[op]at_", _NAME, "20,"),
    ("databricks-token", "dapi", _HEX, "32"),
    ("shopify-token", "shp(?:at|ca|pa|ss)_", "[a-fA-F0-9]", "32"),
    ("linear-key", "lin_(?:api|oauth)_", _WORD, "32,"),
    ("grafana-token", "gl(?:sa|c)_", "[A-Za-z0-9_]", "32,"),
    ("supabase-token", "sbp_", _HEX, "40"),
    ("figma-token", "fig[dou]_", _NAME, "36,"),
    ("notion-token", "ntn_", _WORD, "40,"),
    ("postman-key", "PMAK-", "[a-f0-9-]", "59"),
    ("newrelic-key", "NRAK-", "[A-Z0-9]", "27"),
    ("age-key", "AGE-SECRET-KEY-1", "[0-9A-Z]", "58"),
)

#: Number of characters after the prefix that an anchor requires. More would make the automaton too large.
_ANCHORED = "{8}"

#: `sk-` keys of several providers. The prefix is ambiguous, so the rest must look random.
_BARE_SK = r"sk-[A-Za-z0-9]{32,}"

_JWT = r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?"

#: Maximum length of the body of a private key (characters).
_LONGEST_PEM = 20_000

_PEM_HEADER = compiled(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----|Private-Lines: \d+")
_PEM_FOOTER = re.compile(r"-----END|Private-MAC:")
_PEM_BODY = re.compile(r"[A-Za-z0-9+/=\s\\:,.|→()-]*")
_PEM_MARGIN = re.compile(r"(?:\s|\\[nrt])*")
_PEM_MARGIN_END = re.compile(r"(?:\s|\\[nrt])*\Z")
_PEM_LINE = re.compile(r"(?:(?<=\\n)|(?<=\\r)|(?<![A-Za-z0-9+/=]))[A-Za-z0-9+/]{40,}={0,2}")


def known_rules() -> Iterator[Rule]:
    for kind, prefix, characters, count in PREFIXED:
        found = tokens(compiled(f"{prefix}{characters}{{{count}}}"))
        yield Rule(kind=kind, anchor=prefix + characters + _ANCHORED, find=found)
    yield Rule(kind="sk-key", anchor=f"sk-{_WORD}{_ANCHORED}", find=tokens(compiled(_BARE_SK), random=True))
    yield Rule(kind="jwt", anchor=r"eyJ[A-Za-z0-9_-]{8,}\.eyJ", find=_jwts)
    yield Rule(kind="private-key", anchor=r"PRIVATE KEY(?: BLOCK)?-----|Private-Lines:", find=_private_keys)


_JWT_RE2 = compiled(_JWT)


def _jwts(text: str) -> Iterator[Span]:
    for match in _JWT_RE2.finditer(text):
        start, end = match.span()
        if begins_word(text, start) and JwtTokenDetector.is_formally_valid(_payload(text[start:end])):
            yield start, end


def _payload(token: str) -> str:
    """Return header and claims. A token without its signature is also redacted."""
    return ".".join(token.split(".")[:2])


def _private_keys(text: str) -> Iterator[Span]:
    """Yield the body of each key. Header and footer remain, so that readers recognize a key."""
    headers = [match.span() for match in _PEM_HEADER.finditer(text)]
    for (_, start), (following, _) in pairwise([*headers, (len(text), len(text))]):
        limit = min(following, start + _LONGEST_PEM)
        footer = _PEM_FOOTER.search(text, start, limit)
        yield from _key_body(text, start, footer.start() if footer else limit, whole=footer is not None)


def _key_body(text: str, start: int, end: int, *, whole: bool) -> Iterator[Span]:
    """Yield the body if it is only base64 and whitespace, else its (quoted or truncated) lines."""
    if whole and _PEM_BODY.fullmatch(text, start, end) and _PEM_LINE.search(text, start, end):
        lead, trail = _PEM_MARGIN.match(text, start, end), _PEM_MARGIN_END.search(text, start, end)
        yield (lead.end() if lead else start), (trail.start() if trail else end)
        return
    for line in _PEM_LINE.finditer(text, start, end):
        if looks_random(line[0]) and not is_example(line[0]):
            yield line.span()
