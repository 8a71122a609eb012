"""Parse the usage that providers report."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.messages import Usage
from pricing import price
from pricing.usage import MAX_TOKENS, UsageError, cache_writes_1h, has_input_tokens, usage_read, usage_salvage

COMPACTION = {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500}
MESSAGE = {
    "type": "message",
    "input_tokens": 1_000,
    "cache_read_input_tokens": 20_000,
    "cache_creation_input_tokens": 2_000,
    "cache_creation": {"ephemeral_1h_input_tokens": 500, "ephemeral_5m_input_tokens": 1_500},
    "output_tokens": 1_000,
}
COMPACTED = {**MESSAGE, "iterations": [COMPACTION, MESSAGE]}


def parts(usage: Usage) -> tuple[int, ...]:
    return tuple(usage.counts.values())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"input_tokens": 5, "output_tokens": 7}, (5, 0, 0, 7)),
        ({"input_tokens": 5, "iterations": []}, (5, 0, 0, 0)),
        (
            {
                "promptTokenCount": 1_000,
                "cachedContentTokenCount": 600,
                "candidatesTokenCount": 20,
                "thoughtsTokenCount": 30,
                "toolUsePromptTokenCount": 50,
                "totalTokenCount": 1_100,
            },
            (450, 600, 0, 50),
        ),
        (
            {"prompt_token_count": 9, "cached_content_token_count": None, "thoughts_token_count": 3},
            (9, 0, 0, 3),
        ),
        ({"input_tokens": 5, "iterations": None, "cache_creation": None}, (5, 0, 0, 0)),
        (
            {"cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 4}},
            (0, 0, 34, 0),
        ),
        (
            {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30}},
            (10, 60, 30, 0),
        ),
        (
            {"prompt_tokens": 100, "prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40},
            (40, 60, 0, 0),
        ),
        (
            {"prompt_tokens": 100, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30},
            (10, 60, 30, 0),
        ),
        (
            {
                "prompt_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_creation_tokens": 50},
            },
            (0, 60, 40, 0),
        ),
        ({"input_tokens": 0, "output_tokens": MAX_TOKENS}, (0, 0, 0, MAX_TOKENS)),
        ({"prompt_tokens": 100, "prompt_tokens_details": None, "completion_tokens": 9}, (100, 0, 0, 9)),
        (
            {
                "prompt_tokens": 1,
                "completion_tokens": 90,
                "completion_tokens_details": {"reasoning_tokens": 64},
            },
            (1, 0, 0, 90),
        ),
        (
            {
                "prompt_tokens": 1,
                "completion_tokens": 9,
                "completion_tokens_details": {"reasoning_tokens": 64},
            },
            (1, 0, 0, 73),
        ),
        (
            {
                "prompt_tokens": 1,
                "completion_tokens": 9,
                "completion_tokens_details": {"reasoning_tokens": 9},
            },
            (1, 0, 0, 9),
        ),
        (
            {
                "input_tokens": 32,
                "output_tokens": 90,
                "total_tokens": 186,
                "output_tokens_details": {"reasoning_tokens": 64},
            },
            (32, 0, 0, 154),
        ),
        (
            {
                "prompt_tokens": 32,
                "completion_tokens": 90,
                "total_tokens": 186,
                "completion_tokens_details": {"reasoning_tokens": 64},
            },
            (32, 0, 0, 154),
        ),
        (
            {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
                "output_tokens": 20,
                "output_tokens_details": {"reasoning_tokens": 15},
                "total_tokens": 120,
            },
            (30, 60, 10, 20),
        ),
    ],
)
def test_usage_is_read_in_disjoint_parts(data: dict[str, Any], expected: tuple[int, ...]) -> None:
    usage = usage_read(data)
    assert parts(usage) == expected
    assert usage.input_tokens == sum(expected[:3])


def test_iterations_are_summed_and_the_prompt_is_that_of_the_last_message() -> None:
    usage = usage_read(COMPACTED)
    assert parts(usage) == (181_000, 20_000, 2_000, 4_500)
    assert (usage.prompt_tokens, usage.input_tokens) == (23_000, 203_000)
    assert cache_writes_1h(COMPACTED) == 500
    twice = usage_read({"iterations": [MESSAGE, {"input_tokens": 40_000}, COMPACTION]})
    assert twice.prompt_tokens == 40_000
    on_demand = usage_read({"input_tokens": 0, "output_tokens": 0, "iterations": [COMPACTION]})
    assert (on_demand.prompt_tokens, on_demand.output_tokens) == (180_000, 3_500)
    most = usage_read({"iterations": [{"input_tokens": MAX_TOKENS}] + [{}] * 999})
    assert most.input_tokens == MAX_TOKENS


@pytest.mark.parametrize(
    ("data", "has_tokens"),
    [
        ({"input_tokens": 0}, True),
        ({"prompt_tokens": 5, "input_tokens": None}, True),
        ({"iterations": []}, True),
        ({"output_tokens": 5, "input_tokens": None}, False),
        ({}, False),
    ],
)
def test_usage_without_input_tokens_is_recognized(data: dict[str, Any], has_tokens: bool) -> None:
    assert has_input_tokens(data) is has_tokens


def test_one_hour_cache_writes_of_a_single_call_are_counted() -> None:
    assert cache_writes_1h(MESSAGE) == 500
    assert cache_writes_1h({"input_tokens": 5}) == 0


def test_each_iteration_is_priced_by_the_size_of_its_own_prompt() -> None:
    # Above 100,000 tokens: 180,000 x 0.50 + 3,500 x 2.50. Below: 1,000 x 0.10 + 20,000 x 0.01
    # + 1,500 x 0.125 + 500 x 0.20 + 1,000 x 0.50.
    separate = [
        price("claude-haiku-5-5", usage_read(COMPACTION)).microusd,
        price("claude-haiku-5-5", usage_read(MESSAGE), cache_write_1h_tokens=500).microusd,
    ]
    together = price("claude-haiku-5-5", usage_read(COMPACTED), cache_write_1h_tokens=500).microusd
    assert separate[1] == 1_088
    assert together is not None
    assert abs(together - sum(cost or 0 for cost in separate)) <= 1


@pytest.mark.parametrize("bad", [-1, 1.5, "1", True, [], {}, MAX_TOKENS + 1, 10**30])
@pytest.mark.parametrize("field", ["input_tokens", "output_tokens", "cache_creation_input_tokens"])
def test_an_invalid_count_is_reported_by_name(field: str, bad: Any) -> None:
    for data in ({field: bad}, {"iterations": [{field: bad}]}):
        with pytest.raises(UsageError) as caught:
            usage_read(data)
        assert caught.value.field == field
        assert str(caught.value).startswith(f"`{field}` must be")


@pytest.mark.parametrize(
    "data",
    [
        {"iterations": 5},
        {"iterations": {}},
        {"iterations": [5]},
        {"iterations": [None]},
        {"iterations": [{}] * 1_001},
        {"iterations": [{"input_tokens": MAX_TOKENS}] * 3},
        {"iterations": [{"output_tokens": MAX_TOKENS}] * 3},
    ],
)
def test_invalid_iterations_are_rejected(data: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="`iterations`"):
        usage_read(data)


@pytest.mark.parametrize("field", ["prompt_tokens_details", "completion_tokens_details", "cache_creation"])
@pytest.mark.parametrize("bad", [5, "x", [], True])
def test_details_that_are_not_an_object_are_rejected(field: str, bad: Any) -> None:
    data = {field: bad} | ({} if field == "cache_creation" else {"prompt_tokens": 1})
    with pytest.raises(UsageError, match="must be an object"):
        usage_read(data)


def test_a_log_loses_only_the_invalid_fields() -> None:
    data = {**COMPACTED, "input_tokens": "many", "cache_creation": 5, "speed": "fast", "extra": {"a": []}}
    assert usage_salvage(data) == usage_salvage(COMPACTED)
    assert usage_salvage(MESSAGE) == (usage_read(MESSAGE), 500)
    later = {"iterations": [MESSAGE, {**COMPACTION, "note": 1.5}]}
    assert usage_salvage(later)[0].prompt_tokens == 23_000
    assert usage_salvage({"input_tokens": 10**30, "output_tokens": 5}) == (Usage(output_tokens=5), 0)
    assert usage_salvage({"iterations": [None, "x", {"input_tokens": 5}]})[0].prompt_tokens == 5
    assert usage_salvage({"iterations": [{"input_tokens": MAX_TOKENS}] * 3}) == (Usage(), 0)


def test_the_results_of_googles_tools_are_billed_but_not_part_of_the_prompt() -> None:
    usage = usage_read({"promptTokenCount": 1_000, "toolUsePromptTokenCount": 50, "candidatesTokenCount": 20})
    assert (usage.prompt_tokens, usage.input_tokens) == (1_000, 1_050)
