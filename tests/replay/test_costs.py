"""The cost of a replay, and the real sizes of its prompts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.errors import SummaryUnavailable
from compaction.messages import Usage
from compaction.policy import get_policy
from compaction.replay.costs import Billing, actual_cost, cost
from compaction.replay.estimate import EstimatingSummarizer
from compaction.replay.prices import Prices, Tier
from compaction.replay.result import Result
from compaction.replay.scale import Scale, scale_of
from compaction.replay.setting import Limit
from compaction.replay.simulate import replay
from compaction.replay.transcript import HOUR, Transcript
from tests.replay.builders import COUNTER, transcript

PRICES = Prices.of_rates({"input": 4, "read": 1, "write": 5, "write_1h": 8, "output": 20})


def unchanged(session: Transcript) -> Result:
    """Return the result of the session without compaction."""
    return replay(session, get_policy("off"), COUNTER, budget=session.peak)


def compacted(session: Transcript) -> Result:
    """Return the result with half of the largest prompt as the budget."""
    return replay(session, get_policy("balanced"), COUNTER, budget=Limit(ratio=0.5).budget(session))


def test_the_scale_is_found_from_how_reports_grow() -> None:
    session = transcript()
    calls = [
        replace(call, usage=Usage(uncached_tokens=2 * (session.size(call) + 500))) for call in session.calls
    ]
    scale = scale_of(replace(session, calls=calls))
    assert scale.ratio == pytest.approx(2)
    assert scale.unseen == 500
    assert scale.estimated(scale.real(3_000, sent=3_000, reported=None)) == 3_000


@pytest.mark.parametrize(
    ("reports", "ratio", "unseen"),
    [
        ([], 1, 0),
        ([(1_000, 1_500)], 1, 500),
        ([(1_000, 900)], 1, 0),
        ([(1_000, 1_300), (2_000, 2_100)], 0.8, 625),
        ([(1_000, 3_900), (2_000, 6_800)], 2.9, 345),
        # Content that is not logged was added before the second call, or removed.
        ([(1_000, 1_500), (1_200, 2_500), (1_400, 2_700)], 1, 500),
        ([(1_000, 1_500), (2_000, 4_500), (3_000, 5_500)], 1, 500),
        ([(1_000, 2_500), (2_000, 3_000), (3_000, 4_000)], 1, 1_500),
        ([(1_000, 2_500), (2_000, 2_900), (3_000, 3_900)], 1, 1_500),
        # The same prompt again, and a shorter one.
        ([(1_000, 1_500), (1_000, 2_500), (2_000, 3_500)], 1, 500),
        ([(1_000, 1_500), (900, 1_300), (1_900, 2_300)], 1, 500),
    ],
)
def test_the_scale_is_that_of_the_growth_that_the_log_contains(
    reports: list[tuple[int, int]], ratio: float, unseen: int
) -> None:
    session = transcript()
    calls = [
        replace(call, beside=10_000, served=sent, usage=Usage(uncached_tokens=count))
        for call, (sent, count) in zip(session.calls, reports, strict=False)
    ]
    scale = scale_of(replace(session, calls=calls))
    assert scale.ratio == pytest.approx(ratio)
    assert scale.unseen == unseen


def test_the_growth_after_a_compaction_by_the_client_does_not_count() -> None:
    session = transcript(restart=1)
    calls = [
        replace(call, beside=10_000, served=sent, usage=Usage(uncached_tokens=count))
        for call, (sent, count) in zip(session.calls, [(1_000, 1_500), (2_000, 3_500)], strict=False)
    ]
    assert calls[0].start < calls[1].start
    assert scale_of(replace(session, calls=calls)).ratio == 1


def test_a_reported_size_is_scaled_to_a_shorter_prompt_and_extrapolated_to_a_longer_one() -> None:
    scale = Scale(ratio=2, unseen=1_000)
    assert scale.real(3_000, sent=5_000, reported=18_000) == 12_000
    assert scale.real(5_000, sent=5_000, reported=18_000) == 18_000
    assert scale.real(6_000, sent=5_000, reported=18_000) == 20_000
    assert scale.real(6_000, sent=5_000, reported=None) == 14_000
    [call, *_] = transcript(usage=Usage(output_tokens=5)).calls
    assert call.reported is None


@pytest.mark.slow
def test_off_costs_what_the_session_cost() -> None:
    """Whatever the provider cached, and at the prices of each call's model."""
    session = transcript()
    sizes = [2 * (session.size(call) + 500) for call in session.calls]
    before = [0, *sizes[:-1]]
    dear = Prices.of_rates({"input": 40, "read": 4, "write": 50, "output": 200})
    caches = {
        "all": before,
        "none": [0] * 60,
        "only the system prompt": [1_000] * 60,
        "dropped at times": [0 if n % 7 == 3 else known for n, known in enumerate(before)],
    }
    for name, cached in caches.items():
        for written in (0.0, 0.5, 1.0):
            calls = []
            for call, size, read in zip(session.calls, sizes, cached, strict=True):
                new = round(written * (size - read))
                usage = Usage(
                    cache_read_tokens=read,
                    cache_write_tokens=new,
                    uncached_tokens=size - read - new,
                    output_tokens=40,
                )
                calls.append(replace(call, usage=usage))
            logged = replace(session, calls=calls)
            for prices in ([PRICES] * 60, [PRICES] * 30 + [dear] * 30):
                predicted = cost(unchanged(logged), prices, billing=Billing.of(logged, prices))
                assert predicted == pytest.approx(actual_cost(logged, prices), rel=1e-4), name
            found = compacted(logged).series.cached
            whole = zip(found, cached, before, strict=True)
            assert all(read <= known for read, known, last in whole if known < last), name


def test_costs_by_any_table() -> None:
    session = transcript(2, usage=Usage(cache_write_tokens=2_000, output_tokens=10))
    result = unchanged(session)
    prices = (PRICES, PRICES)
    assert cost(result, prices, cached=False) == 2 * (2_000 * 4 + 10 * 20)
    assert cost(result, prices) == 2 * (2_000 * 5 + 10 * 20)
    dearer = Billing(written_share=0.5, one_hour=True)
    assert cost(result, prices, billing=dearer) == 2 * (1_000 * 4 + 1_000 * 8 + 10 * 20)
    assert actual_cost(session, prices) == 2 * (2_000 * 5 + 10 * 20)
    assert actual_cost(transcript(2), prices) is None
    calls = [replace(call, cost=1_000) for call in session.calls]
    discounted = replace(session, calls=calls)
    assert actual_cost(discounted, prices) == 2_000
    assert cost(result, prices, billing=Billing.of(discounted, prices)) == pytest.approx(2_000, abs=1)
    assert actual_cost(replace(session, calls=()), ()) is None


def test_one_hour_cache_writes_have_a_separate_price() -> None:
    session = transcript(1, usage=Usage(cache_write_tokens=2_000))
    prices = [Prices.of_rates({"input": 4, "write": 5, "write_1h": 8})]
    for seconds, rate in ((HOUR, 8), (HOUR - 1, 5)):
        logged = replace(session, cache_seconds=seconds)
        assert actual_cost(logged, prices) == 2_000 * rate
        assert cost(unchanged(logged), prices, billing=Billing.of(logged, prices)) == 2_000 * rate


def test_each_call_of_a_response_has_the_price_of_its_own_size() -> None:
    low = Tier(uncached=1, cache_read=0.1, cache_write=1.25, cache_write_1h=2, output=5)
    high = Tier(uncached=2, cache_read=0.2, cache_write=2.5, cache_write_1h=4, output=10, above=1_000)
    calls = (Usage(uncached_tokens=900), Usage(uncached_tokens=1_100))
    usage = Usage(uncached_tokens=2_000, calls=calls)
    assert Prices(tiers=(low, high)).of(usage) == 900 + 2 * 1_100


def test_the_actual_cost_needs_the_usage_of_nine_in_ten_calls() -> None:
    session = transcript(10, usage=Usage(uncached_tokens=100))
    for unreported, expected in ((1, 9 * 100 * 4), (2, None)):
        calls = [*(replace(call, usage=None) for call in session.calls[:unreported])]
        calls += session.calls[unreported:]
        assert actual_cost(replace(session, calls=calls), [PRICES] * 10) == expected


def test_an_estimate_counts_the_requests_for_summaries_without_sending_them() -> None:
    messages = transcript().messages
    size = sum(COUNTER.count(message.text) for message in messages)

    def calls(max_input_tokens: int) -> list[Usage]:
        summarizer = EstimatingSummarizer(COUNTER, max_input_tokens=max_input_tokens)
        with pytest.raises(SummaryUnavailable) as caught:
            summarizer.summarize(messages, cap_tokens=400)
        assert caught.value.requests == len(caught.value.calls)
        return list(caught.value.calls)

    [whole] = calls(100_000)
    assert size < whole.uncached_tokens < 1.5 * size
    assert whole.output_tokens == 400
    pieces = calls(size // 3)
    assert len(pieces) > 2
    assert sum(piece.uncached_tokens for piece in pieces) > size
    assert all(whole.uncached_tokens - size < piece.uncached_tokens < size / 2 for piece in pieces)


def test_invalid_rates_are_rejected() -> None:
    assert Prices.of_rates({"input": 3, "read": 0}).of(Usage(cache_read_tokens=100)) == 0
    for rates, reason in (
        ({"input": 3, "read": -1}, "must not be negative"),
        ({"read": 3}, "`input` is required"),
        ({"input": 3, "tax": 1, "base": 1}, "unknown price: base, tax"),
    ):
        with pytest.raises(ValueError, match=reason):
            Prices.of_rates(rates)
