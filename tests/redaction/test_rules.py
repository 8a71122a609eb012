"""The pre-filter misses nothing that a rule would find, and every detector of the library is considered."""

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
from redaction.library import EXCLUDED, SOURCES
from tests.plugins.examples import examples
from tests.redaction.secrets import IN_PLACE, TOKENS

PATTERNS = [
    pytest.param(pattern, id=f"{source.kind}-{number}")
    for source in SOURCES
    for number, pattern in enumerate(source.plugin().denylist)
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


def test_every_detector_of_the_library_is_used_or_excluded_with_a_reason() -> None:
    known = {source.plugin.__name__ for source in SOURCES} | set(EXCLUDED)
    assert {plugin.__name__ for plugin in get_mapping_from_secret_type_to_class().values()} == known
