"""Real transcripts over the API, turn by turn, with a quarter of their original budget.

Uses a sample by default; CONTEXTAPP_ALL_TRAJECTORIES=1 takes every session.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from accounts.models import Project
from accounts.services.api_keys import api_key_create
from compaction import dialects
from compaction.adapters.tiktoken_counter import counter
from compaction.capabilities import capabilities_of
from compaction.edits import Edit, Op
from compaction.messages import Message
from compaction.planning.pipeline import Plan, PlanRequest, plan
from compaction.planning.preparation import boundary_request, is_near_hard, leaves_room
from compaction.policy import Budget
from compaction.recap import Recap
from compaction.rendering import render
from compaction.sizes.calibration import Calibration
from compaction.triggers import TriggerState, evaluate
from compaction.view import View, apply
from importers.base import ImportedSession
from importers.reading import log_sources
from importers.registry import recognize
from pricing.tokenizers import token_factor
from redaction import redact_bytes
from sessions.selectors.redaction import redaction_of
from sessions.selectors.token_budgets import policy_of
from sessions.store import bodies
from sessions.store.handles import handle_make
from tests.api.client import Api
from tests.api.talk import assert_valid

pytestmark = [pytest.mark.django_db, pytest.mark.trajectories]

ALL = os.environ.get("CONTEXTAPP_ALL_TRAJECTORIES") == "1"
SHARE = 0.25
POLICY = {"soft": 0}  # pushes do not run background compactions

#: Folders, and the number of their sessions in the sample: of those with LEAST turns, the first MOST.
SAMPLE = {
    "entire-claude-code": 1,
    "mini-swe-agent": 1,
    "openhands-completions": 1,
    "pi-coding-agent": 1,
    "tau-bench": 1,
    "tau2-bench": 1,
}
LEAST, MOST = 20, 60


class Core:
    """The same session in the core, without server and database."""

    def __init__(self, session: ImportedSession, id: UUID, budget: int) -> None:
        self.format, self.budget = session.format, budget
        self.messages: list[Message] = []
        self.edits: Sequence[Edit] = ()
        self.recap: Recap | None = None
        self.compacted_tokens: int | None = None
        self.make_handle = partial(handle_make, id)
        self.policy = policy_of(POLICY)
        self.calibration = Calibration()
        self.model = session.model
        self.boundary: int | None = None

    def push(self, messages: Sequence[Message], *, turn: int, model: str) -> None:
        start = len(self.messages)
        self.messages += (replace(m, position=start + i, turn=turn) for i, m in enumerate(messages))
        view = apply(self.edits, self._shown())
        self.calibration = Calibration(initial=token_factor(model))
        state = TriggerState(
            tokens=self.calibration.provider(view.tokens),
            budget=self.budget,
            compacted_tokens=self.compacted_tokens,
        )
        self.boundary = self.boundary if model == self.model else None
        self.model = model
        trigger = evaluate(state, self.policy)
        if trigger is None:
            is_near = is_near_hard(tokens=state.tokens, budget=self.budget, policy=self.policy)
            if self.boundary is None and is_near and not capabilities_of(model).bound_thinking:
                self.boundary = len(self.messages)
            return
        made, following = self._plan_to_boundary(view) or (plan(self._request(view)), 0)
        self.compacted_tokens = self.calibration.provider(made.view.tokens + following)
        self.edits, self.recap, self.boundary = made.view.edits, made.recap, None

    def _request(self, view: View) -> PlanRequest:
        return PlanRequest(
            view=view,
            policy=self.policy,
            counter=counter(),
            budget=Budget(input_tokens=self.budget),
            trigger="hard",
            calibration=self.calibration,
            capabilities=capabilities_of(self.model),
            make_handle=self.make_handle,
            previous=self.recap,
        )

    def _plan_to_boundary(self, view: View) -> tuple[Plan, int] | None:
        """Return the plan up to the boundary, and the tokens that follow it, if they fit."""
        end = self.boundary
        if end is None:
            return None
        before = apply(self.edits, [message for message in self._shown() if message.position < end])
        made, following = plan(boundary_request(self._request(before))), view.tokens - before.tokens
        room, messages = self.calibration.room(self.budget), len(self.messages) - end
        applies = leaves_room(made.record, tokens=following, messages=messages, policy=self.policy, room=room)
        return (made, following) if applies else None

    def _shown(self) -> list[Message]:
        """Return the messages that are not evicted: a plan starts from them, not from the history."""
        removed = {at for e in self.edits if e.op is Op.EVICT for at in range(e.position, e.end + 1)}
        return [message for message in self.messages if message.position not in removed]

    def prompt(self, format: str, model: str) -> tuple[Any, int]:
        view = apply(self.edits, self.messages)
        made = render(view.messages, format=format, capabilities=capabilities_of(model))
        return bodies.json_value(bodies.json_bytes(made.to_json())), view.tokens


def sessions_of(folder: Path) -> Iterator[ImportedSession]:
    for source in log_sources([folder]):
        log = source.read()
        importer = recognize(log)
        assert importer is not None
        yield from (item for item in importer.read(log) if isinstance(item, ImportedSession))


def chosen(folder: Path, count: int) -> list[ImportedSession]:
    found = []
    for session in sessions_of(folder):
        if ALL:
            found.append(session)
        elif len(session.turns) >= LEAST:
            found.append(replace(session, turns=session.turns[:MOST]))
        if not ALL and len(found) == count:
            break
    return found


def parsed(
    project: Project, session: ImportedSession
) -> list[tuple[str, list[dict[str, Any]], list[Message]]]:
    """Return the model of each turn, and its messages as pushed and as parsed by the core."""
    key = redaction_of(project)
    turns, model = [], session.model
    for turn in session.turns:
        pushed = [dict(message.body) for message in turn.messages]
        safe = [bodies.json_value(redact_bytes(bodies.json_bytes(body), redaction=key)[0]) for body in pushed]
        model = turn.model or model
        if pushed:
            turns.append((model, pushed, [*dialects.parse(safe, format=session.format, counter=counter())]))
    return turns


def replay(api: Api, project: Project, session: ImportedSession, name: str) -> dict[str, int]:
    turns = parsed(project, session)
    budget = max(200, int(SHARE * sum(message.tokens for _, _, read in turns for message in read)))
    made = api.post(
        "sessions/",
        {
            "id": name,
            "format": session.format,
            "model": session.model,
            "budget": {"input_tokens": budget},
            "policy": POLICY,
        },
    )
    assert made.status_code == 201, made.content
    core = Core(session, UUID(made.json()["id"]), budget)
    served, misfits = [], 0
    for number, (model, pushed, read) in enumerate(turns):
        response = api.post(f"sessions/{name}/turns/", {"messages": pushed, "model": model})
        assert response.status_code == 201, response.content
        core.push(read, turn=number, model=model)
        for format in ("openai", "anthropic"):
            response = api.get(f"sessions/{name}/prompt/?format={format}")
            assert_valid(response, model)
            prompt = response.json()
            expected, tokens = core.prompt(format, model)
            assert {field: prompt.get(field) for field in expected} == expected, (name, number)
            assert prompt["tokens"] == tokens, (name, number)
        size = core.calibration.provider(prompt["tokens"])
        assert prompt["fits"] == (size <= budget)
        if not prompt["fits"]:
            misfits += 1
            assert f"{size:,} tokens exceed the budget of {budget:,}" in prompt["reason"]
        served.append(response.content)
    chance = random.Random(name)
    for turn in chance.sample(range(len(served)), min(50, len(served))):
        again = api.get(f"sessions/{name}/prompt/?format=anthropic&at_turn={turn}")
        assert again.content == served[turn], (name, turn)
    return {
        "sessions": 1,
        "turns": len(turns),
        "compactions": api.get(f"sessions/{name}/").json()["compactions"],
        "misfits": misfits,
    }


@pytest.mark.parametrize("folder", SAMPLE)
def test_every_prompt_is_valid_fits_and_equals_that_of_the_core(
    project: Project, trajectories: Path, folder: str
) -> None:
    api = Api(api_key_create(project=project, name="replay")[1])
    totals: dict[str, int] = {}
    for number, session in enumerate(chosen(trajectories / folder, SAMPLE[folder])):
        for name, count in replay(api, project, session, f"{folder}-{number}").items():
            totals[name] = totals.get(name, 0) + count
    print(f"\n{folder}: {totals}")
    assert totals["turns"] > 0
