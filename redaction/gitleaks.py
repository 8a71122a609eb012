"""Apply the rules of gitleaks (`rules/gitleaks.toml`), whose patterns have RE2 syntax.

gitleaks scans files that must not contain secrets. Transcripts contain every kind of text, so a rule whose
pattern starts with the name of a service (`datadog … = value`) also requires letters and digits in the value.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from redaction.shape import is_mixed
from redaction.spans import Rule, Span, compiled, tokens

RULES_FILE = Path(__file__).parent / "rules" / "gitleaks.toml"

#: Unused rules, with the reason.
EXCLUDED = {
    "asana-client-id": "an identifier, not a secret",
    "curl-auth-header": "`credentials` finds the header",
    "curl-auth-user": "`commands` finds the password",
    "discord-client-id": "an identifier, not a secret",
    "flutterwave-public-key": "a public key",
    "freemius-secret-key": "matches only in PHP files; `credentials` finds the value",
    "generic-api-key": "matches much code; `credentials` is more precise",
    "hashicorp-tf-password": "matches examples in code; `credentials` is more precise",
    "jwt": "`known_tokens` also checks that the token decodes",
    "kubernetes-secret-yaml": "`files` finds each value",
    "lob-api-key": "matches `global:`; `known_tokens` has the prefix",
    "lob-pub-api-key": "the same",
    "openai-api-key": "`known_tokens` has the prefixes",
    "pkcs12-file": "matches the names of files",
    "private-key": "`known_tokens` keeps header and footer",
    "sourcegraph-access-token": "matches every commit hash; `known_tokens` has the prefix",
    "twilio-api-key": "the detector of detect-secrets is the same",
    "vault-service-token": "`s.` and a word is common code; `known_tokens` has the prefixes in use",
}

#: What follows a secret: gitleaks requires a quote, a semicolon or a blank; in prose and code, any character
#: that cannot be part of a token.
_TAILS = (r"""(?:[\x60'"\s;]|\\[nr]|$)""", r"""(?:[\x60'"\s;]|\\[nr]|$|\b)""", r"(?:[^\w-]|\z)")
_END = r"(?:[^\w.+/=-]|\.[^\w]|\.?\z)"

_NAME_BEFORE = r"[\w.-]{0,50}?"
_NAME_AFTER = r"(?:[ \t\w.-]{0,20})"

#: The rest of an assignment to a name, in raw JSON. Only loops: counters would multiply the automaton's states.
_ASSIGNED_RAW = r"""[\\\w.-]*[\s'"\\]*[=>:?|,]+[\\\x60'"\s=]*[\w.%-]"""

#: Counts in patterns, and the number of characters that an anchor requires at most.
_COUNT = re.compile(r"\{(\d+)(?:,\d*)?\}")
_ANCHORED = 8

#: Anchors of rules whose prefix is a common word.
_ANCHORS = {
    "airtable-personnal-access-token": r"pat[[:alnum:]]{14}\.[a-f0-9]{8}",
    "facebook-access-token": r"\d\d\d\d\d\d(?:\||%)[0-9A-Za-z_-]{8}",
}

#: Rules whose groups are parts of the secret.
_WHOLE = ("jwt-base64", "microsoft-teams-webhook")


@dataclass(frozen=True, kw_only=True)
class GitleaksRule:
    """One rule of the file. `allowed` (patterns) and `stop_words` exclude values; they include those for all rules."""

    kind: str
    pattern: str
    keywords: tuple[str, ...]
    entropy: float = 0
    group: int | None = None
    allowed: tuple[str, ...] = ()
    stop_words: tuple[str, ...] = ()

    @cached_property
    def names(self) -> str | None:
        """Return the pattern of the names that the value is assigned to, if the rule requires one."""
        before, separator, _ = self.pattern.partition(_NAME_AFTER)
        return before.rpartition(_NAME_BEFORE)[2] if separator else None

    @cached_property
    def body(self) -> str:
        """Return the pattern without the boundaries around the secret."""
        pattern = self.pattern.replace(_NAME_BEFORE, "").removeprefix(r"\b")
        tail = next((tail for tail in _TAILS if pattern.endswith(tail)), r"\b" * pattern.endswith(r"\b"))
        return pattern.removesuffix(tail)

    @property
    def anchor(self) -> str:
        if self.names is not None:
            return f"(?i:{self.names}){_ASSIGNED_RAW}"
        if self.kind in _ANCHORS:
            return _ANCHORS[self.kind]
        if re.match(r"(?:\(\?:\^\||\(\?i\)|\(|\\b)*(?:\[|\\[dw])", self.body):
            return f"(?i:{'|'.join(map(re.escape, self.keywords))})"
        return _start_of(self.body)

    def find(self, text: str) -> Iterator[Span]:
        return self._finder(text)

    @cached_property
    def _finder(self) -> Callable[[str], Iterator[Span]]:
        """Return a function that finds the secrets. Compiled at the first use: most rules are never needed."""
        regex = compiled(self.body + _END if self.names is not None else self.body)
        group = min(1, regex.groups) if self.group is None else self.group
        return tokens(regex, group=group, glued=self.names is None, accepts=self.accepts)

    def accepts(self, secret: str) -> bool:
        """Return whether the secret has the required entropy and is not on a list of allowed values."""
        if self.names is not None and not is_mixed(secret):
            return False
        lower = secret.lower()
        if any(word in lower for word in self.stop_words) or _entropy(secret) < self.entropy:
            return False
        return not any(_compiled(pattern).search(secret) for pattern in self.allowed)


@cache
def gitleaks_rules() -> tuple[GitleaksRule, ...]:
    """Return the rules of the file that are in use."""
    config = tomllib.loads(RULES_FILE.read_text())
    shared = config["allowlist"]
    return tuple(
        _rule(rule, [*rule.get("allowlists", ()), shared])
        for rule in config["rules"]
        if rule["id"] not in EXCLUDED
    )


def _rule(rule: dict[str, Any], lists: Iterable[dict[str, Any]]) -> GitleaksRule:
    lists = [entry for entry in lists if entry.get("regexTarget", "secret") == "secret"]
    return GitleaksRule(
        kind=rule["id"][:40].strip("-"),
        pattern=rule["regex"],
        keywords=tuple(rule["keywords"]),
        entropy=rule.get("entropy", 0),
        group=0 if rule["id"] in _WHOLE else rule.get("secretGroup"),
        allowed=tuple(regex for entry in lists for regex in entry.get("regexes", ())),
        stop_words=tuple(word for entry in lists for word in entry.get("stopwords", ())),
    )


def _start_of(pattern: str) -> str:
    """Return a pattern for the start of each match: up to the first long count, if no alternative follows.

    It has no word boundaries, which would slow down the automaton.
    """
    pattern = pattern.replace(r"\b", "")
    for count in _COUNT.finditer(pattern):
        end = count.end()
        if int(count[1]) >= _ANCHORED and "|" not in pattern[end:]:
            start = f"{pattern[: count.start()]}{{{_ANCHORED}}}"
            closed = re.sub(r"\\.|\[[^]]*\]", "", start)
            return start + ")" * (closed.count("(") - closed.count(")"))
    return pattern


@cache
def _compiled(pattern: str) -> Any:
    return compiled(pattern)


def _entropy(text: str) -> float:
    """Return the Shannon entropy of the characters (bits per character)."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values())


def rules() -> Iterator[Rule]:
    for rule in gitleaks_rules():
        yield Rule(kind=rule.kind, anchor=rule.anchor, find=rule.find)


def shared_anchor() -> str:
    """Return one anchor for all rules. Names share what follows them, which keeps the automaton small."""
    names = dict.fromkeys(rule.names for rule in gitleaks_rules() if rule.names is not None)
    others = dict.fromkeys(rule.anchor for rule in gitleaks_rules() if rule.names is None)
    return "|".join([f"(?i:{'|'.join(names)}){_ASSIGNED_RAW}", *(f"(?:{anchor})" for anchor in others)])
