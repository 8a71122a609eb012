"""Apply the rules of detect-secrets to whole texts. Its scanner works line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector

from redaction.shape import looks_random
from redaction.spans import Rule, compiled, tokens

#: Unused plugins, with the reason.
EXCLUDED = {
    "Base64HighEntropyString": "agents work with hashes, ids and encoded data",
    "HexHighEntropyString": "every commit hash would match",
    "IPPublicDetector": "IP addresses are not secrets",
    "KeywordDetector": "matches `token: str`; `credentials` is more precise",
    "ArtifactoryDetector": "requires blanks or quotes on both sides; `known_tokens` has the prefix",
    "BasicAuthDetector": "misses passwords with punctuation and empty users; `credentials` finds them",
    "PrivateKeyDetector": "matches only the header; `known_tokens` finds the body",
    "CloudantDetector": "matches names, which `credentials` covers",
    "IbmCloudIamDetector": "the same",
    "IbmCosHmacDetector": "the same",
    "SoftlayerDetector": "the same",
    "JwtTokenDetector": "leaves the signature; `known_tokens` finds all of it, using the plugin's check",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A plugin, the name of its kind, and how to apply its patterns.

    `group` is the group that contains the secret, if the pattern also matches its context. `anchors` replace
    patterns that RE2 does not support, or that contain quotes and spaces, which raw JSON escapes. `random`
    requires a match to look random, because long names in code resemble these tokens. The prefix of `glued`
    tokens is distinctive, also within a word.
    """

    kind: str
    plugin: type[RegexBasedDetector]
    group: int = 0
    anchors: tuple[str, ...] = ()
    random: bool = False
    glued: bool = False


SOURCES = (
    Source(
        kind="aws-access-key",
        plugin=AWSKeyDetector,
        group=1,
        anchors=(
            r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}",
            "(?i)aws",
        ),
        glued=True,
    ),
    Source(kind="azure-storage-key", plugin=AzureStorageKeyDetector, anchors=("AccountKey=",)),
    Source(
        kind="github-token", plugin=GitHubTokenDetector, anchors=("gh[opsur]_[A-Za-z0-9_]{8}",), glued=True
    ),
    Source(
        kind="gitlab-token",
        plugin=GitLabTokenDetector,
        anchors=("(?:gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas)-|GR1348941)[A-Za-z0-9_-]{8}",),
        glued=True,
    ),
    Source(kind="openai-key", plugin=OpenAIDetector, anchors=("T3BlbkFJ",), glued=True),
    Source(
        kind="slack-token",
        plugin=SlackDetector,
        anchors=(r"(?i)xox[abpors]-\d|hooks\.slack\.com",),
        glued=True,
    ),
    Source(kind="stripe-key", plugin=StripeDetector, anchors=("[rs]k_live_",), glued=True),
    Source(kind="npm-token", plugin=NpmDetector, group=1, anchors=(r":_authToken=",)),
    Source(kind="pypi-token", plugin=PypiTokenDetector, anchors=("pypi-AgE",), glued=True),
    Source(kind="sendgrid-key", plugin=SendGridDetector, anchors=(r"SG\.[a-zA-Z0-9_-]{8}",), glued=True),
    Source(kind="square-secret", plugin=SquareOAuthDetector, anchors=(r"sq0csp-",), glued=True),
    Source(
        kind="telegram-token",
        plugin=TelegramBotTokenDetector,
        anchors=(r"\d\d\d\d:[0-9A-Za-z_-]{8}",),
        random=True,
    ),
    Source(kind="twilio-key", plugin=TwilioKeyDetector, anchors=("(?:AC|SK)[a-z0-9]{8}",)),
    Source(
        kind="discord-token",
        plugin=DiscordBotTokenDetector,
        anchors=(r"\.[a-zA-Z\d_-]{6}\.[a-zA-Z\d_-]{27}",),
        random=True,
    ),
    Source(kind="mailchimp-key", plugin=MailchimpDetector, anchors=(r"[0-9a-z]-us\d",)),
)


def library_rules() -> Iterator[Rule]:
    """Yield one rule for each pattern of each plugin."""
    for source in SOURCES:
        patterns: list[re.Pattern[str]] = [re.compile(regex) for regex in source.plugin().denylist]
        anchor = "|".join(source.anchors)
        for pattern in patterns:
            found = tokens(
                compiled(pattern.pattern, pattern.flags),
                group=min(source.group, pattern.groups),
                glued=source.glued,
                accepts=looks_random if source.random else None,
            )
            flag = "(?i)" if pattern.flags & re.IGNORECASE else ""
            yield Rule(kind=source.kind, anchor=anchor or flag + pattern.pattern, find=found)
