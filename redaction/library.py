"""Detect the tokens of services with the patterns of detect-secrets.

The package itself is used only by the tests, which compare the patterns: it loads an HTTP client, which would
take 6 MB of memory in each process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from redaction.shape import looks_random
from redaction.spans import Rule, compiled, tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The patterns of a detector (`(?i)` marks those that ignore case), and how to apply them.

    `anchors` are found in raw JSON, which escapes quotes and other characters that the patterns contain.
    `group` is the group that contains the secret, if the pattern also matches its context. `random` requires
    a match to look random, because long names in code resemble these tokens. The prefix of `glued` tokens is
    distinctive, also within a word.
    """

    kind: str
    patterns: tuple[str, ...]
    anchors: tuple[str, ...]
    group: int = 0
    random: bool = False
    glued: bool = False


SOURCES = (
    Source(
        kind="aws-access-key",
        patterns=(
            r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}",
            r"""(?i)aws.{0,20}?(?:key|pwd|pw|password|pass|token).{0,20}?[\'\"]([0-9a-zA-Z/+]{40})[\'\"]""",
        ),
        group=1,
        anchors=(
            r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}",
            "(?i)aws",
        ),
        glued=True,
    ),
    Source(kind="azure-storage-key", patterns=(r"AccountKey=[a-zA-Z0-9+\/=]{88}",), anchors=("AccountKey=",)),
    Source(
        kind="github-token",
        patterns=(r"(ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9_]{36}",),
        anchors=("gh[opsur]_[A-Za-z0-9_]{8}",),
        glued=True,
    ),
    Source(
        kind="gitlab-token",
        patterns=(
            r"(glpat|gldt|glft|glsoat|glrt)-[A-Za-z0-9_\-]{20,50}(?!\w)",
            r"GR1348941[A-Za-z0-9_\-]{20,50}(?!\w)",
            r"glcbt-([0-9a-fA-F]{2}_)?[A-Za-z0-9_\-]{20,50}(?!\w)",
            r"glimt-[A-Za-z0-9_\-]{25}(?!\w)",
            r"glptt-[A-Za-z0-9_\-]{40}(?!\w)",
            r"glagent-[A-Za-z0-9_\-]{50,1024}(?!\w)",
            r"gloas-[A-Za-z0-9_\-]{64}(?!\w)",
        ),
        anchors=("(?:gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas)-|GR1348941)[A-Za-z0-9_-]{8}",),
        glued=True,
    ),
    Source(
        kind="openai-key",
        patterns=(r"sk-[A-Za-z0-9-_]*[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}",),
        anchors=("T3BlbkFJ",),
        glued=True,
    ),
    Source(
        kind="slack-token",
        patterns=(
            r"(?i)xox(?:a|b|p|o|s|r)-(?:\d+-)+[a-z0-9]+",
            r"(?i)https://hooks\.slack\.com/services/T[a-zA-Z0-9_]+/B[a-zA-Z0-9_]+/[a-zA-Z0-9_]+",
        ),
        anchors=(r"(?i)xox[abpors]-\d|hooks\.slack\.com",),
        glued=True,
    ),
    Source(
        kind="stripe-key", patterns=(r"(?:r|s)k_live_[0-9a-zA-Z]{24}",), anchors=("[rs]k_live_",), glued=True
    ),
    Source(
        kind="npm-token",
        patterns=(r"\/\/.+\/:_authToken=\s*((npm_.+)|([A-Fa-f0-9-]{36})).*",),
        group=1,
        anchors=(r":_authToken=",),
    ),
    Source(
        kind="pypi-token",
        patterns=(
            r"pypi-AgEIcHlwaS5vcmc[A-Za-z0-9-_]{70,}",
            r"pypi-AgENdGVzdC5weXBpLm9yZw[A-Za-z0-9-_]{70,}",
        ),
        anchors=("pypi-AgE",),
        glued=True,
    ),
    Source(
        kind="sendgrid-key",
        patterns=(r"SG\.[a-zA-Z0-9_-]{22}\.[a-zA-Z0-9_-]{43}",),
        anchors=(r"SG\.[a-zA-Z0-9_-]{8}",),
        glued=True,
    ),
    Source(
        kind="square-secret", patterns=(r"sq0csp-[0-9A-Za-z\\\-_]{43}",), anchors=(r"sq0csp-",), glued=True
    ),
    Source(
        kind="telegram-token",
        patterns=(r"\d{8,10}:[0-9A-Za-z_-]{35}",),
        anchors=(r"\d\d\d\d:[0-9A-Za-z_-]{8}",),
        random=True,
    ),
    Source(
        kind="twilio-key",
        patterns=(
            r"AC[a-z0-9]{32}",
            r"SK[a-z0-9]{32}",
        ),
        anchors=("(?:AC|SK)[a-z0-9]{8}",),
    ),
    Source(
        kind="discord-token",
        patterns=(r"[MNO][a-zA-Z\d_-]{23,25}\.[a-zA-Z\d_-]{6}\.[a-zA-Z\d_-]{27}",),
        anchors=(r"\.[a-zA-Z\d_-]{6}\.[a-zA-Z\d_-]{27}",),
        random=True,
    ),
    Source(kind="mailchimp-key", patterns=(r"[0-9a-z]{32}-us[0-9]{1,2}",), anchors=(r"[0-9a-z]-us\d",)),
)


def library_rules() -> Iterator[Rule]:
    """Yield one rule for each pattern."""
    for source in SOURCES:
        for pattern in source.patterns:
            found = tokens(
                compiled(pattern),
                group=min(source.group, re.compile(pattern).groups),
                glued=source.glued,
                accepts=looks_random if source.random else None,
            )
            yield Rule(kind=source.kind, anchor="|".join(source.anchors), find=found)
