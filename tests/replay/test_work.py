"""The work of a replay is linear in the calls of a session."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Mapping
from dataclasses import replace

import pytest

from compaction.policy import PRESETS, Policy
from compaction.replay.prompts import GrowingPrompt
from compaction.replay.served import without_model
from compaction.replay.setting import Limit
from compaction.replay.simulate import replay
from compaction.replay.transcript import Transcript
from compaction.view import View
from tests.replay.builders import COUNTER, transcript

POLICIES: Mapping[str, Policy] = {
    **{name: without_model(policy) for name, policy in PRESETS.items()},
    "provider": replace(without_model(PRESETS["balanced"]), engine="provider"),
}


def function_calls(session: Transcript, policy: Policy) -> int:
    """Count the function calls of a replay, including those of generators and built-ins."""
    budget = Limit(ratio=1.0).budget(session)
    assert session.references  # are extracted once per session, not per replay
    profile = cProfile.Profile()
    result = profile.runcall(replay, session, policy, COUNTER, budget=budget)
    assert result.valid == len(session.calls)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_work_is_linear_in_the_calls(policy: str) -> None:
    sessions = (transcript(reads, format="anthropic") for reads in (100, 300))
    short, long = (function_calls(session, POLICIES[policy]) for session in sessions)
    assert long < 3.5 * short


@pytest.mark.slow
def test_work_is_linear_if_all_messages_must_be_rendered() -> None:
    """Messages of another dialect than the session's are not regular."""
    sessions = (replace(transcript(reads), format="anthropic") for reads in (50, 150))
    short, long = (function_calls(session, POLICIES["off"]) for session in sessions)
    assert long < 3.5 * short


def test_a_prompt_grows_like_its_view() -> None:
    session = transcript(5)
    prompt, until = GrowingPrompt(View(entries=())), 0
    for beside, call in enumerate(session.calls):
        prompt.append(session.messages[until : call.answer], beside=beside)
        until = call.answer
        assert prompt.messages == list(session.messages[:until])
        assert prompt.tokens == sum(message.tokens for message in prompt.messages) + beside
        if beside % 2:
            view = prompt.view
            assert (list(view.prompt_messages), view.tokens) == (prompt.messages, prompt.tokens)
