"""Detect PEM blocks, JWTs, and tokens with a prefix."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from itertools import pairwise

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
    ("square-token", "sq0[a-z]{3}-", _NAME, "22,"),
    ("notion-token", "secret_", _WORD, "43"),
    ("cloudflare-token", "cf(?:ut|at|k)_", _WORD, "40,"),
    ("atlassian-token", "AT(?:ATT|CTT|BB)", "[A-Za-z0-9_=-]", "24,"),
    ("sentry-token", "sntry[us]_", "[A-Za-z0-9_+/=-]", "32,"),
    ("rubygems-key", "rubygems_", _HEX, "40,"),
    ("planetscale-token", "pscale_(?:tkn|oauth|pw)_", "[A-Za-z0-9_.=-]", "30,"),
    ("langsmith-key", "(?:lsv2_(?:pt|sk)|ls_)_", "[a-f0-9_]", "32,"),
    ("langfuse-key", "sk-lf-", "[a-f0-9-]", "32,"),
    ("tailscale-key", "tskey-[a-z]{3,10}-", "[A-Za-z0-9-]", "20,"),
    ("facebook-token", "EAA(?:[MC]|G)", _WORD, "60,"),
    ("pinecone-key", "pcsk_", "[A-Za-z0-9_]", "40,"),
    ("neon-key", "napi_", _WORD, "40,"),
    ("render-key", "rnd_", _WORD, "28,"),
    ("netlify-token", "nfp_", _WORD, "36,"),
    ("resend-key", "re_[A-Za-z0-9]{6,10}_", _WORD, "20,"),
    ("supabase-key", "sb_secret_", _NAME, "24,"),
    ("elevenlabs-key", "sk_", _HEX, "48"),
    ("circleci-token", "CCI(?:PAT|PRJ)_", "[A-Za-z0-9_]", "40,"),
    ("buildkite-token", "bk(?:ua|aj|pt)_", _HEX, "40"),
    ("sonar-token", "sq[uap]_", _HEX, "40"),
    ("sourcegraph-token", "sgp_", "[A-Za-z0-9_]", "40,"),
    ("crates-token", "cio", _WORD, "32"),
    ("nuget-key", "oy2", "[a-z0-9]", "43"),
    ("tencent-key", "AKID", _WORD, "32"),
    ("hubspot-token", "pat-(?:na|eu|ap)1-", "[a-f0-9-]", "36"),
    ("posthog-key", "phx_", _WORD, "40,"),
    ("razorpay-key", "rzp_live_", _WORD, "14,"),
    ("braintree-token", r"access_token\$(?:production|sandbox)\$", "[a-z0-9$]", "40,"),
    ("mapbox-token", r"sk\.eyJ", r"[A-Za-z0-9_.-]", "60,"),
    ("contentful-token", "CFPAT-", _NAME, "43"),
    ("mailersend-token", r"mlsn\.", _HEX, "64"),
    ("fireworks-key", "fw_", _WORD, "22,24"),
    ("cerebras-key", "csk-", _WORD, "40,"),
    ("nvidia-key", "nvapi-", _NAME, "60,"),
    ("tavily-key", "tvly-(?:dev-)?", _WORD, "32"),
    ("firecrawl-key", "fc-[a-f0-9]{12}", _HEX, "20"),
    ("aiven-token", "AVNS_", _NAME, "16,"),
    ("discord-webhook", r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{17,20}/", _NAME, "60,"),
    ("zapier-webhook", r"hooks\.zapier\.com/hooks/catch/\d+/", "[a-z0-9/]", "7,"),
    (
        "google-chat-webhook",
        r"chat\.googleapis\.com/v1/spaces/[\w-]+/messages\?key=",
        "[A-Za-z0-9_%&=-]",
        "60,",
    ),
    ("sentry-dsn", r"[a-f0-9]{32}@[a-z0-9.]*sentry", "[a-z0-9./-]", "3,"),
    ("asana-token", r"[12]/\d{13,18}(?:/\d{13,18})?:", _HEX, "32"),
    ("lob-key", "(?:live|test)_(?:pub_)?", _HEX, "31,"),
    ("azure-devops-token", f"{_WORD}{{76}}AZDO", _WORD, "4"),
    ("azure-ai-key", f"{_WORD}{{52}}JQQJ99", _WORD, "26"),
    ("huggingface-token", "api_org_", _WORD, "30,"),
    ("google-refresh-token", "1//0", _NAME, "40,"),
    ("together-key", "tgp_v1_", _NAME, "40,"),
    ("wandb-key", "wandb_v1_", _NAME, "60,"),
    ("snyk-token", r"snyk_uat\.[a-f0-9]{8}\.", _NAME, "40,"),
    ("doppler-token", r"dp\.st\.(?:[a-z0-9_-]+\.)?", _WORD, "40,"),
    ("jina-key", "jina_", _WORD, "40,"),
    ("cursor-key", "crsr_", _HEX, "64"),
    ("packagist-token", "packagist_[a-z]{3}_", _HEX, "60,"),
    ("wireguard-key", r"P(?:rivate|reshared)Key = ?", "[A-Za-z0-9+/]", "43"),
)

#: Prefixes that also end common words.
_ENDS_OF_WORDS = (
    "sig=",
    "AKC",
    "secret_",
    "cio",
    "oy2",
    "fc-[a-f0-9]{12}",
    "fw_",
    "1//0",
    "re_[A-Za-z0-9]{6,10}_",
)

#: Anchors of prefixes that do not start with a literal, which would make the automaton slow.
_ANCHORS = {
    "azure-client-secret": r"\dQ~",
    "asana-token": r"\d:",
    "sentry-dsn": r"[a-f0-9]@[a-z0-9.]*sentry",
    "azure-devops-token": "AZDO",
    "azure-ai-key": "JQQJ99",
}

#: Number of characters after the prefix that an anchor requires. More would make the automaton too large.
_ANCHORED = 8

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
        glued = prefix not in _ENDS_OF_WORDS
        found = tokens(compiled(f"{prefix}{characters}{{{count}}}"), glued=glued)
        anchored = min(_ANCHORED, int(count.partition(",")[0]))
        anchor = f"{_ANCHORS.get(kind, prefix)}{characters}{{{anchored}}}"
        yield Rule(kind=kind, anchor=anchor, find=found)
    yield Rule(
        kind="sk-key", anchor=f"sk-{_WORD}{{20}}", find=tokens(compiled(_BARE_SK), accepts=looks_random)
    )
    yield Rule(kind="jwt", anchor=r"eyJ[A-Za-z0-9_-]{8,}\.eyJ", find=_jwts)
    yield Rule(kind="private-key", anchor=r"PRIVATE KEY(?: BLOCK)?-----|Private-Lines:", find=_private_keys)


_JWT_RE2 = compiled(_JWT)


def _jwts(text: str) -> Iterator[Span]:
    for match in _JWT_RE2.finditer(text):
        start, end = match.span()
        header, claims, *_ = text[start:end].split(".")  # a token without its signature is also redacted
        if begins_word(text, start) and _is_encoded_json(header) and _is_encoded_json(claims):
            yield start, end


def _is_encoded_json(value: str) -> bool:
    """Return whether a value is base64url of JSON, without padding."""
    try:
        json.loads(base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)))
    except RecursionError:  # nested too deeply to be read
        return True
    except ValueError:
        return False
    return True


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
