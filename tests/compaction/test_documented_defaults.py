"""The documentation and the tooltips state the defaults of the code."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from compaction.eviction import GAIN_SHARE
from compaction.planning.preparation import LEAD
from compaction.policy import PRESETS, Policy
from compaction.strategies import STRATEGIES
from compaction.triggers import TRIGGERS
from compaction.triggers.base import PLAN_TURNS
from pricing.tokenizers import token_factor

DOCS = Path(__file__).resolve().parents[2] / "docs"
DEFAULT, AGGRESSIVE = Policy(), PRESETS["aggressive"]

#: Settings that the table does not list as such: what a policy is, and the rules per tool.
ELSEWHERE = {"name", "version", "tools"}


def page(name: str) -> str:
    """Return the text of a page of the documentation, in one line."""
    return " ".join((DOCS / f"{name}.md").read_text().split())


def settings() -> dict[str, str]:
    """Return the documented default of each setting."""
    table = (DOCS / "reference/policies.md").read_text().split("## Settings")[1].split("\n## ")[0]
    found: dict[str, str] = {}
    for names, default in re.findall(r"^\| (`.+?`) \| (.+?) \|", table, re.MULTILINE):
        each = re.findall(r"`(\w+)`", names)
        found |= zip(
            each, default.split(", ") if default[0].isdigit() else [default] * len(each), strict=True
        )
    return found


def test_every_setting_is_documented_with_its_default() -> None:
    documented = settings()
    assert documented.keys() == {field.name for field in fields(Policy)} - ELSEWHERE
    numbers = {name: float(text) for name, text in documented.items() if text[0].isdigit()}
    assert numbers == {name: getattr(DEFAULT, name) for name in numbers}
    prices = {"cache_write_price", "cache_read_price"}
    assert documented.keys() - numbers.keys() == {"steps", "engine", "summary_instructions", *prices}
    known = f"{DEFAULT.cache_write_price} and {DEFAULT.cache_read_price}"
    assert documented["cache_read_price"] == f"the model's, or {known} if they are unknown"


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        (STRATEGIES["collapse"].description, f"outputs of {DEFAULT.collapse_tokens} tokens or more"),
        (STRATEGIES["recency"].description, f"outputs of {DEFAULT.recency_collapse_tokens} tokens or more"),
        (STRATEGIES["clip"].description, f"outputs over {DEFAULT.clip_tokens:,} tokens"),
        (
            STRATEGIES["clip"].description,
            f"beginning ({DEFAULT.clip_head:.0%}) and the end ({1 - DEFAULT.clip_head:.0%})",
        ),
        (TRIGGERS["hard"].description, f"reaches {DEFAULT.hard:.0%} of the budget"),
        (TRIGGERS["soft"].description, f"reaches {DEFAULT.soft:.0%} of the budget"),
        (
            page("reference/policies"),
            f"compacts from {AGGRESSIVE.hard:.0%} down to {AGGRESSIVE.target:.0%}, keeps a smaller tail",
        ),
        (page("reference/policies"), f"collapses outputs from {AGGRESSIVE.collapse_tokens} tokens"),
        (page("concepts/compaction"), f"At {DEFAULT.hard:.0%} of the budget, the **hard** trigger"),
        (page("concepts/compaction"), f"once the prompt reaches {DEFAULT.hard - LEAD:.0%}"),
        (page("concepts/compaction"), f"At {DEFAULT.soft:.0%}, if the project has a summarizer model"),
        (page("concepts/compaction"), f"has grown by {DEFAULT.refire_delta:.0%} of the budget"),
        (page("concepts/compaction"), f"grown by another {DEFAULT.refire_delta:.0%}, and `turns` waits two"),
        (page("concepts/compaction"), f"a **target** of {DEFAULT.target:.0%} of the budget"),
        (page("concepts/compaction"), f"and at least {DEFAULT.tail_share:.0%} of the room for messages"),
        (page("concepts/compaction"), f"saves enough: at least {GAIN_SHARE:.0%} of the prompt"),
        (page("concepts/compaction"), f"up to {DEFAULT.recap_tokens_max:,} tokens"),
        (page("architecture"), f"within {LEAD:.0%} of the budget below the hard trigger"),
        (page("concepts/overview"), f"{token_factor('claude')} for Claude"),
        (page("concepts/overview"), f"{token_factor('deepseek')} for DeepSeek"),
        (page("concepts/overview"), f"{token_factor('deepseek-reasoner')} for deepseek-reasoner"),
        (page("concepts/overview"), f"{token_factor('')} for all others"),
    ],
)
def test_the_numbers_in_texts_are_those_of_the_code(text: str, phrase: str) -> None:
    assert phrase in text


def test_the_numbers_in_words_are_those_of_the_code() -> None:
    assert (DEFAULT.tail_messages, DEFAULT.max_failures, PLAN_TURNS) == (4, 3, 2)
    text = page("concepts/compaction")
    assert "at least four, and at least" in text
    assert "After three failed background compactions" in text
    assert "`turns` waits two turns" in text
