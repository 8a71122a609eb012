"""Custom patterns of a project."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from redaction import ExtraPattern, InvalidPatternError, Redaction, extra_rules, redact, redact_bytes
from tests.redaction.secrets import KEY


def own(*patterns: ExtraPattern) -> Redaction:
    return replace(KEY, patterns=patterns)


def test_a_pattern_replaces_its_first_group_or_all() -> None:
    ticket = ExtraPattern(kind="ticket", pattern=r"ACME-\d+")
    customer = ExtraPattern(kind="customer", pattern=r'customer "([^"]+)"')
    text, findings = redact('ACME-12: customer "J. Ö."', redaction=own(ticket, customer))
    assert [finding.kind for finding in findings] == ["customer", "ticket"]
    assert text.startswith("[redacted:ticket:")
    assert 'customer "[redacted:customer:' in text


def test_a_clean_message_is_the_same_object_with_patterns_too() -> None:
    raw = json.dumps({"content": "nothing \u00e9"}).encode()
    assert redact_bytes(raw, redaction=own(ExtraPattern(kind="t", pattern=r"ACME-\d+")))[0] is raw


def test_a_placeholder_is_left_alone_by_any_pattern() -> None:
    key = own(ExtraPattern(kind="word", pattern=r"redacted|[a-z]+"))
    once, _ = redact("some words", redaction=key)
    assert redact(once, redaction=key)[0] is once


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|a)*b", r"(.*a){12}"])
def test_catastrophic_patterns_take_linear_time(pattern: str) -> None:
    key = own(ExtraPattern(kind="slow", pattern=pattern))
    redact_bytes(json.dumps("a" * 50_000 + "!").encode(), redaction=key)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing"),
        (r"(?<=x)y", "invalid perl operator"),
        (r"(a)\1", "invalid escape"),
        ("x*", "empty"),
        ("x" * 501, "500"),
        ("\ud800", "surrogates"),
        (r"(\w{900}){900}", "repetition"),
    ],
)
def test_an_unusable_pattern_is_rejected_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(InvalidPatternError, match=reason):
        extra_rules([ExtraPattern(kind="k", pattern=pattern)])


def test_kinds_are_slugs_and_patterns_are_few() -> None:
    with pytest.raises(InvalidPatternError, match="a-z"):
        extra_rules([ExtraPattern(kind="No Slug", pattern="x")])
    with pytest.raises(InvalidPatternError, match="at most 20"):
        extra_rules([ExtraPattern(kind="k", pattern="x")] * 21)
