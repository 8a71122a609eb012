"""Real transcripts: a replay under `off` reproduces the transcript and predicts its cost."""

from pathlib import Path

import pytest

from compaction.adapters.tiktoken_counter import counter
from compaction.policy import get_policy
from compaction.replay.result import totals
from compaction.replay.served import without_model
from compaction.replay.setting import Limit, Setting
from compaction.replay.simulate import replay
from compaction.replay.transcript import Transcript
from importers.reading import log_sources
from replay.offline.compare import Compared, Comparison
from replay.offline.logs import log_transcripts

pytestmark = pytest.mark.trajectories

POLICIES = ("off", "balanced")


@pytest.fixture(scope="module")
def transcripts(trajectories: Path) -> list[Transcript]:
    """Every ninth Claude Code log."""
    sources = list(log_sources([trajectories / "entire-claude-code"]))[::9]
    return [transcript for source in sources for transcript in log_transcripts(source)]


@pytest.fixture(scope="module")
def compared(transcripts: list[Transcript]) -> list[Compared]:
    settings = tuple(
        Setting(policy=without_model(get_policy(name)), limit=Limit(ratio=0.2)) for name in POLICIES
    )
    return [Comparison(settings=settings).compare(transcript) for transcript in transcripts]


def test_off_is_the_transcript(transcripts: list[Transcript]) -> None:
    """Sizes equal the estimates, or the provider's counts where they are reported."""
    for transcript in transcripts:
        result = replay(transcript, get_policy("off"), counter(), budget=transcript.peak)
        assert list(result.series.sizes) == [transcript.size(call) for call in transcript.calls]
        counts = [call.reported for call in transcript.calls]
        pairs = zip(result.series.prompts, counts, strict=True)
        assert all(prompt == count for prompt, count in pairs if count is not None)
        assert result.valid == result.fits == result.calls
        assert result.references.kept == result.references.used


def test_the_predicted_cost_is_accurate(compared: list[Compared]) -> None:
    real = sum(session.actual or 0 for session in compared)
    predicted = totals(session.totals[0] for session in compared).cost
    assert predicted is not None
    assert 0.9 < predicted / real < 1.1


def test_compaction_serves_valid_prompts_that_fit_for_less(compared: list[Compared]) -> None:
    off, balanced = (totals(session.totals[index] for session in compared) for index in (0, 1))
    assert balanced.valid == balanced.fits == balanced.calls == off.calls
    assert balanced.cost is not None
    assert off.cost is not None
    assert balanced.cost < off.cost
    assert balanced.references.lost < 0.05 * balanced.references.used
