"""The cost of a summary with several requests, each priced by its own size."""

from __future__ import annotations

import pytest

import pricing
from accounts.models import Project
from compaction.messages import Usage
from compaction.recap.spans import Evicted
from replay.models import ReplayRun
from replay.services.summarizers import summaries_cost
from sessions.services.compactions.summaries import SummaryAttempt, summary_attempt
from tests.compaction.builders import tool_loop
from tests.compaction.sessions import messages_of
from tests.provider import behaviours
from tests.provider.behaviours import summary
from tests.provider.server import FakeProvider

pytestmark = [pytest.mark.django_db, pytest.mark.slow]  # Anthropic's SDK takes seconds to load

MODEL = "claude-haiku-5-5"
CHEAP, DEAR = pricing.rates(MODEL)


def ask(project: Project) -> SummaryAttempt:
    """Return messages that need more than one request."""
    messages = messages_of(tool_loop(400, width=40))
    evicted = Evicted(messages=messages, first=0, last=len(messages) - 1, cap_tokens=2_000)
    return summary_attempt(project=project, evicted=evicted, previous=None, instructions="")


def assert_cheap(attempt: SummaryAttempt) -> None:
    notes = attempt.notes["summary"]
    assert notes["requests"] > 1
    assert notes["uncached_tokens"] > DEAR.above
    usage = Usage(uncached_tokens=notes["uncached_tokens"], output_tokens=notes["output_tokens"])
    assert attempt.cost_microusd is not None
    assert abs(attempt.cost_microusd - CHEAP.of(usage, 0) * 1_000_000) <= notes["requests"]


def test_each_request_is_priced_by_its_own_size(provider: FakeProvider, project: Project) -> None:
    attempt = ask(project)
    assert attempt.result is not None
    assert_cheap(attempt)


def test_unused_calls_are_counted_too(provider: FakeProvider, project: Project) -> None:
    provider.script(summary(), behaviours.refusal())
    attempt = ask(project)
    assert attempt.result is None
    assert_cheap(attempt)


def test_summaries_of_replays_are_priced_the_same_way(project: Project) -> None:
    calls = [Usage(uncached_tokens=DEAR.above)] * 3
    assert summaries_cost(ReplayRun(project=project), calls) == pricing.calls_cost(MODEL, calls)
