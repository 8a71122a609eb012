"""The pre-filter misses nothing that a rule would find, and the patterns are those of detect-secrets."""

from __future__ import annotations

import json
import re

import pytest
import re2
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from hypothesis import given, settings
from hypothesis import strategies as st

from redaction.engine import RULES, rules_to_apply
from redaction.known_tokens import PREFIXED
from redaction.library import SOURCES
from tests.plugins.examples import examples
from tests.redaction.secrets import IN_PLACE, TOKENS

#: Detectors of detect-secrets that are not used, with the reason.
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
    "JwtTokenDetector": "leaves the signature; `known_tokens` finds all of it",
}

PATTERNS = [
    pytest.param(re.compile(pattern), id=f"{source.kind}-{number}")
    for source in SOURCES
    for number, pattern in enumerate(source.patterns)
] + [pytest.param(re.compile(f"{p}{c}{{{n}}}"), id=f"own-{kind}-{p[:6]}") for kind, p, c, n in PREFIXED]


@pytest.mark.slow
@pytest.mark.parametrize("pattern", PATTERNS)
def test_anchors_match_whenever_their_pattern_can_match(pattern: re.Pattern[str]) -> None:
    @given(st.from_regex(pattern, fullmatch=True, alphabet=st.characters(codec="ascii")))
    @settings(max_examples=examples(6), deadline=None, database=None)
    def check(text: str) -> None:
        rules, hidden = rules_to_apply(json.dumps(text).encode())
        assert rules or hidden

    check()


@pytest.mark.slow
def test_the_pre_filter_finds_every_anchor() -> None:
    for text in [secret for _, secret in TOKENS] + [text.format(secret) for _, text, secret in IN_PLACE]:
        raw = json.dumps(text).encode()
        alone = [rule for rule in RULES if re2.search(rule.anchor, raw.decode())]
        assert rules_to_apply(raw)[0] == alone


def test_the_patterns_are_those_of_the_library() -> None:
    detectors = {each.__name__: each for each in get_mapping_from_secret_type_to_class().values()}
    used = [detectors[name] for name in detectors.keys() - EXCLUDED.keys()]
    patterns = [pattern for detector in used for pattern in detector().denylist]
    expected = {("(?i)" if each.flags & re.IGNORECASE else "") + each.pattern for each in patterns}
    assert {pattern for source in SOURCES for pattern in source.patterns} == expected
    assert detectors.keys() > EXCLUDED.keys()
