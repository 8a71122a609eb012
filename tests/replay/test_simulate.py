"""The measurements of a replay: sizes, cache, validity, references, compactions."""

from dataclasses import asdict, replace
from itertools import pairwise

import pytest

from compaction.messages import Message, Usage
from compaction.policy import PRESETS, get_policy
from compaction.recap import Recap, SummaryResult
from compaction.replay.result import Result
from compaction.replay.served import Served, without_model
from compaction.replay.setting import Limit
from compaction.replay.simulate import replay
from compaction.replay.transcript import Transcript
from compaction.view import View
from tests.replay.builders import COUNTER, transcript


def run(session: Transcript, policy: str, ratio: float = 1.0) -> Result:
    budget = Limit(ratio=ratio).budget(session)
    return replay(session, without_model(get_policy(policy)), COUNTER, budget=budget)


def test_off_at_the_whole_budget_is_the_transcript() -> None:
    session = transcript()
    result = run(session, "off")
    assert result.calls == len(session.calls) == 60
    assert list(result.series.sizes) == [session.size(call) for call in session.calls]
    assert result.valid == result.fits == 60
    assert result.references.kept == result.references.used == 6
    assert not result.compacted
    assert result.first_lost is None


def test_off_over_the_budget_does_not_fit_and_loses_references() -> None:
    result = run(transcript(), "off", 0.5)
    assert 0 < result.fits < 60
    assert result.references.lost > 0
    assert result.first_lost is not None
    assert result.first_lost.why == "over"


@pytest.mark.parametrize("policy", sorted(PRESETS.keys() - {"off"}))
@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.2])
def test_every_policy_serves_valid_prompts_that_fit(policy: str, ratio: float) -> None:
    result = run(transcript(), policy, ratio)
    assert result.valid == result.fits == 60
    assert max(result.series.sizes) <= result.budget
    used = result.references
    assert used.kept + used.recoverable + used.lost == used.used == 6


@pytest.mark.slow
def test_a_window_loses_what_balanced_keeps() -> None:
    window, balanced = run(transcript(back=25), "baseline", 0.2), run(transcript(back=25), "balanced", 0.2)
    assert balanced.references.lost < window.references.lost
    assert len(balanced.compacted) < len(window.compacted)
    lost = window.first_lost
    assert lost is not None
    assert lost.name.startswith("told_name_")
    assert lost.why == "evicted"
    assert lost.seen_turn < lost.turn


def test_recoverable_references_are_not_lost() -> None:
    session = transcript(back=19)
    terse = replace(without_model(get_policy("masking")), collapse_tokens=50, descriptor_names=0)
    result = replay(session, terse, COUNTER, budget=Limit(ratio=0.5).budget(session))
    assert result.references.recoverable > 0
    assert {lost.why for lost in result.examples} == {"hidden"}


def test_a_prompt_that_grows_is_read_from_the_cache_and_one_that_changed_is_written() -> None:
    result = run(transcript(), "balanced", 0.5)
    at = result.series.turns.index(result.compacted[0])
    assert result.series.cached[at - 1] == result.series.prompts[at - 2]
    assert result.series.cached[at] < result.series.prompts[at - 1] / 2


def test_the_provider_cache_expires() -> None:
    assert sum(run(transcript(gap=301), "off").series.cached) == 0
    assert sum(run(transcript(gap=299), "off").series.cached) > 0


def test_a_compaction_by_the_client_starts_over() -> None:
    session = transcript(restart=30)
    result = run(session, "balanced", 0.5)
    at = result.series.turns.index(31)
    assert session.calls[at].start == 60
    assert result.series.sizes[at] < 1_000
    assert result.valid == len(session.calls)


def test_budgets_in_provider_tokens() -> None:
    session = transcript()
    calls = [
        replace(call, usage=Usage(uncached_tokens=2 * session.size(call) + 9_000)) for call in session.calls
    ]
    logged = replace(session, calls=calls)
    assert Limit(ratio=1.0).provider_tokens(logged) == max(run(logged, "off").series.prompts)
    assert Limit(ratio=0.5).provider_tokens(logged) == pytest.approx(session.peak + 9_000, abs=20)
    assert Limit(tokens=500).provider_tokens(logged) == 500  # less than the unlogged system prompt
    assert run(logged, "off").fits == 60
    tiny = replay(
        logged, without_model(get_policy("balanced")), COUNTER, budget=Limit(tokens=500).budget(logged)
    )
    assert tiny.fits == tiny.references.kept == 0


def test_sizes_are_anchored_on_what_the_provider_reported() -> None:
    session = transcript(usage=Usage(uncached_tokens=1_000, cache_read_tokens=19_000, output_tokens=50))
    assert set(run(session, "off").series.prompts) == {20_000}
    assert max(run(session, "balanced", 0.2).series.prompts) <= 20_000
    assert min(run(session, "balanced", 0.2).series.prompts) < 20_000


def test_reports_of_compacted_prompts_do_not_shrink_the_others() -> None:
    """The provider reports the prompt that contextapp served, not the transcript."""
    whole = transcript()
    served = [size if n < 30 else size // 4 for n, size in enumerate(map(whole.size, whole.calls))]
    repeated = [0, *(0 if after < before else before for before, after in pairwise(served))]
    calls = [
        replace(
            call,
            served=tokens,
            usage=Usage(uncached_tokens=2 * (tokens + 500 - known), cache_read_tokens=2 * known),
        )
        for call, tokens, known in zip(whole.calls, served, repeated, strict=True)
    ]
    session = replace(whole, calls=calls)
    off = run(session, "off").series
    sizes = [2 * (size + 500) for size in map(whole.size, calls)]
    assert list(off.prompts) == pytest.approx(sizes, abs=2)
    # Only the first call is cold: a compaction by contextapp did not change the prompt of this policy.
    assert all(cached > 0 for cached, prompt in zip(off.cached, off.prompts, strict=True) if prompt > 5_000)
    # What an estimate misses in the short prompt does not multiply in the long one.
    calls[40] = replace(calls[40], usage=Usage(uncached_tokens=2 * (served[40] + 700)))
    more = run(replace(whole, calls=calls), "off").series
    assert more.prompts[40] == pytest.approx(sizes[40] + 400, abs=20)


def test_a_result_survives_json() -> None:
    result = replace(run(transcript(), "baseline", 0.2), summaries=(Usage(output_tokens=1), Usage()))
    assert Result.from_json(result.to_json()) == result


def test_results_with_summed_summaries_can_be_read() -> None:
    result = run(transcript(), "baseline", 0.2)
    old = {**result.to_json(), "summaries": asdict(Usage(output_tokens=1))}
    assert Result.from_json(old) == replace(result, summaries=(Usage(output_tokens=1),))


class Rote:
    """A summarizer with a constant result that counts its calls."""

    def __init__(self) -> None:
        self.count = 0

    def summarize(
        self,
        evicted: object,
        *,
        previous: Recap | None = None,
        cap_tokens: int,
        instructions: str = "",
        requests: object = (),
    ) -> SummaryResult:
        self.count += 1
        usage = Usage(uncached_tokens=100, output_tokens=10)
        return SummaryResult(recap=Recap(first_turn=0, last_turn=1), calls=[usage], model="rote", requests=1)


def test_a_real_summarizer_is_called_and_paid_for() -> None:
    session, rote = transcript(), Rote()
    result = replay(
        session, get_policy("balanced"), COUNTER, budget=Limit(ratio=0.2).budget(session), summarizer=rote
    )
    assert rote.count > 0
    assert [call.uncached_tokens for call in result.summaries] == [100] * rote.count
    assert result.valid == result.fits == 60


def test_the_messages_are_never_changed() -> None:
    session = transcript()
    before: tuple[Message, ...] = tuple(session.messages)
    run(session, "aggressive", 0.2)
    assert all(old is new for old, new in zip(before, session.messages, strict=True))


def test_a_working_memory_is_part_of_the_prompt() -> None:
    def memory_text(view: View, until: int) -> str:
        return f"noted up to message {until} of {len(view.entries)} entries"

    session, policy = transcript(), without_model(get_policy("balanced"))
    served = Served(session, policy, COUNTER, budget=session.peak // 5, memory_text=memory_text)
    prompts = [served.prompt(call).view for call in session.calls]
    at = next(n for n, prompt in enumerate(prompts) if any(entry.is_generated for entry in prompt.entries))
    first = f"noted up to message {session.calls[at].answer} of {len(prompts[at - 1].entries) + 2} entries"
    assert sum(first in entry.message.text for entry in prompts[at].prompt_entries) == 1


@pytest.mark.slow
def test_the_providers_engine_is_modeled() -> None:
    """Anthropic clears outputs without handles, OpenAI summarizes, and neither edits Chat Completions."""
    own = run(transcript(), "balanced", 0.3)
    for format, is_modeled in (("anthropic", True), ("openai-responses", True), ("openai", False)):
        session = transcript(format=format)
        budget = Limit(ratio=0.3).budget(session)
        policy = replace(get_policy("balanced"), engine="provider")
        result = replay(session, without_model(policy), COUNTER, budget=budget)
        assert result.valid == result.calls
        assert result.compacted
        assert max(result.series.sizes) < 1.2 * budget
        assert (result.compacted != own.compacted) is is_modeled, format
        assert not (is_modeled and result.references.recoverable)
