"""Real transcripts with providers that count differently: every prompt is valid and fits the budget.

The budget is a share of the whole transcript in the provider's tokens. Uses a sample of long sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest

from accounts.models import Project
from accounts.services.api_keys import api_key_create
from importers.base import ImportedSession
from tests.api.client import Api
from tests.api.talk import assert_valid
from tests.api.test_calibration import PROVIDERS
from tests.api.test_trajectories import parsed, sessions_of

pytestmark = [pytest.mark.django_db, pytest.mark.trajectories, pytest.mark.slow]

FOLDERS = ("entire-claude-code", "mini-swe-agent")
#: Every provider with every share, with the folders taking turns.
CASES = [
    (*case, folder)
    for case, folder in zip(product(PROVIDERS, (0.1, 0.25, 0.5)), cycle(FOLDERS), strict=False)
]
#: Turns of each session, and the minimum size of its transcript in estimated tokens.
TURNS, LEAST_TOKENS = 60, 30_000
#: What the system prompt, the tools and the latest request take at most, in the provider's tokens.
LEAST_BUDGET = 16_000


@cache
def long_session(folder: Path) -> ImportedSession:
    """Return the first session with many turns and tokens."""
    for session in sessions_of(folder):
        cut = replace(session, turns=session.turns[:TURNS])
        size = sum(len(str(message.body)) for turn in cut.turns for message in turn.messages) // 4
        if len(cut.turns) == TURNS and size >= LEAST_TOKENS:
            return cut
    raise AssertionError(f"no long session in {folder}")


def calls(
    api: Api, project: Project, session: ImportedSession, *, share: float, count: Callable[[int], int]
) -> Iterator[tuple[dict[str, Any], int]]:
    """Replay a session whose agent fetches a prompt before each answer and reports its size.

    Yields each prompt and the budget.
    """
    turns = parsed(project, session)
    total = sum(message.tokens for _, _, read in turns for message in read)
    budget = max(LEAST_BUDGET, round(share * count(total)))
    body = {"id": "replayed", "format": session.format, "budget": {"input_tokens": budget}}
    assert api.post("sessions/", body | {"policy": {"soft": 0}}).status_code == 201
    for model, pushed, _ in turns:
        for message in pushed:
            usage: dict[str, Any] = {}
            if message["role"] == "assistant":
                response = api.get("sessions/replayed/prompt/")
                assert_valid(response, model)
                prompt = response.json()
                if prompt["messages"]:
                    yield prompt, budget
                    usage = {"usage": {"input_tokens": count(prompt["tokens"])}}
            response = api.post(
                "sessions/replayed/turns/", {"messages": [message], "model": "unknown-model", **usage}
            )
            assert response.status_code == 201, response.content


@pytest.mark.parametrize(("provider", "share", "folder"), CASES)
def test_every_prompt_fits(
    project: Project, trajectories: Path, provider: str, share: float, folder: str
) -> None:
    api = Api(api_key_create(project=project, name="replay")[1])
    count = PROVIDERS[provider]
    session = long_session(trajectories / folder)
    seen = list(calls(api, project, session, share=share, count=count))
    assert len(seen) >= TURNS // 2
    assert api.get("sessions/replayed/").json()["compactions"]
    misfits = [count(prompt["tokens"]) for prompt, budget in seen if count(prompt["tokens"]) > budget]
    assert misfits == []
    assert all(prompt["fits"] for prompt, _ in seen)
