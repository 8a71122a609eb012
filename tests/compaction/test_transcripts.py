"""Real sessions, step by step, at a tenth, a quarter and a half of their final size.

Uses a sample by default; `CONTEXTAPP_ALL_TRANSCRIPTS=1` takes every session and every step.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from bench.transcripts import Transcript, transcripts
from compaction.adapters.tiktoken_counter import TiktokenCounter
from compaction.dialects import parse
from compaction.edits import Edit
from compaction.messages import Message, Role
from compaction.planning.pipeline import Plan, PlanRequest, plan
from compaction.policy import Budget, get_policy
from compaction.recap import Recap
from compaction.rendering import render
from compaction.validation import validate
from compaction.view import apply
from tests.compaction.builders import faults
from tests.compaction.providers import faults as provider_faults

ALL = os.environ.get("CONTEXTAPP_ALL_TRANSCRIPTS") == "1"

#: The sampling intervals: logs, sessions of a log, and steps at which the prompt is rendered.
LOGS, SESSIONS, STEPS = (1, 1, 1) if ALL else (29, 40, 5)

FORMATS = ("anthropic", "openai", "openai-responses", "gemini")


@pytest.fixture(scope="module")
def sessions(trajectories: Path) -> list[Transcript]:
    if ALL:
        return [session for session in transcripts(trajectories) if len(session.messages) > 5]
    logs = sorted(path for path in trajectories.glob("*/**/*") if path.is_file())[::LOGS]
    found = (session for log in logs for session in islice(transcripts(log), 0, None, SESSIONS))
    return [session for session in found if len(session.messages) > 5]


@dataclass
class Replay:
    """One session under one budget, and the results of its steps."""

    session: Transcript
    budget: int
    edits: tuple[Edit, ...] = ()
    recap: Recap | None = None
    last: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    steps: int = 0
    unfit: int = 0
    compactions: int = 0

    def run(self) -> None:
        for count, message in enumerate(self.session.messages):
            if message.role is Role.ASSISTANT and count:
                self.step(count)

    def step(self, count: int) -> None:
        messages = self.session.messages[:count]
        view = apply(self.edits, messages)
        made = plan(
            PlanRequest(
                view=view,
                policy=get_policy("balanced"),
                counter=TiktokenCounter(),
                budget=Budget(input_tokens=self.budget),
                previous=self.recap,
            )
        )
        self.edits, self.recap = self.edits + made.edits, made.recap
        self.steps += 1
        self.compactions += bool(made.edits)
        self._check_plan(made, messages, count)
        if made.edits:
            self.last = {}
        if made.edits or self.steps % STEPS == 0:
            for format in FORMATS:
                self._check_prompt(made, format, count)

    def _check_plan(self, made: Plan, messages: Sequence[Message], count: int) -> None:
        record = made.record
        self.unfit += not made.fits
        if not made.fits and not made.reason:
            self._fault(count, "does not fit, and gives no reason")
        if not made.fits and self._smallest(messages) <= self.budget:
            self._fault(count, "does not fit, though the smallest prompt would")
        parts = {exception.part for exception in record.exceptions}
        if ("head" in parts) == record.head_verbatim or ("tail" in parts) == record.tail_verbatim:
            self._fault(count, "the exceptions do not name what was changed")
        if not record.head_verbatim and "last_resort" not in record.strategies:
            self._fault(count, "the head was changed")
        if not record.tail_verbatim and not {"offload", "drop_oldest", "last_resort"} & set(
            record.strategies
        ):
            self._fault(count, "the tail was changed")
        if made.edits and apply(self.edits, messages).messages != made.view.messages:
            self._fault(count, "the edits do not reproduce the view")

    def _smallest(self, messages: Sequence[Message]) -> int:
        """Tokens of the system prompt and the latest words of the user, with room for a marker."""
        words = [m.tokens for m in messages if m.role is Role.USER and not m.tool_results]
        return sum(m.tokens for m in messages if m.role is Role.SYSTEM) + sum(words[-1:]) + 60

    def _check_prompt(self, made: Plan, format: str, count: int) -> None:
        prompt = render(made.view.messages, format=format)
        for violation in validate(prompt.messages, format, system=prompt.system):
            self._fault(count, f"{format}: {violation}")
        for fault in faults(prompt.messages, format):
            self._fault(count, f"{format}: {fault}")
        last = self.last.get(format, [])
        if format == self.session.format and prompt.messages[: len(last)] != last:
            self._fault(count, "does not begin with the prompt before it")
        self.last[format] = prompt.messages

    def _fault(self, count: int, fault: str) -> None:
        self.faults.append(f"{self.session.name[:40]} at {count}, budget {self.budget}: {fault}")


@pytest.mark.trajectories
@pytest.mark.parametrize("share", [0.10, 0.25, 0.50])
def test_every_prompt_of_recorded_sessions_is_valid_and_fits(
    sessions: list[Transcript], share: float
) -> None:
    found: list[str] = []
    steps = unfit = compactions = 0
    for session in sessions:
        replay = Replay(session, max(1, int(session.tokens * share)))
        replay.run()
        found += replay.faults
        steps, unfit = steps + replay.steps, unfit + replay.unfit
        compactions += replay.compactions
    print(f"{len(sessions)} sessions, {steps} prompts, {compactions} compactions, {unfit} that cannot fit")
    assert not found, f"{len(found)} faults, the first: " + "\n".join(found[:10])


@pytest.mark.trajectories
def test_sessions_without_edits_are_rendered_as_pushed(sessions: list[Transcript]) -> None:
    for session in sessions:
        sources = [dict(message.source or {}) for message in session.messages]
        if not validate(sources, session.format):
            assert render(session.messages, format=session.format).messages == sources


@pytest.mark.trajectories
def test_every_session_converted_to_responses_and_compacted_is_valid(sessions: list[Transcript]) -> None:
    """Each session as a client of the Responses API would have pushed it, at a quarter of its size."""
    found: list[str] = []
    for session in sessions:
        items = render(session.messages, format="openai-responses").messages
        messages = parse(items, format="openai-responses", counter=TiktokenCounter())
        view = apply((), messages)
        budget = Budget(input_tokens=max(1, view.tokens // 4))
        made = plan(
            PlanRequest(view=view, policy=get_policy("balanced"), counter=TiktokenCounter(), budget=budget)
        )
        for shown in (items, render(made.view.messages, format="openai-responses").messages):
            found += [f"{session.name[:40]}: {fault}" for fault in provider_faults(shown, "openai-responses")]
            found += [f"{session.name[:40]}: {each}" for each in validate(shown, "openai-responses")]
    print(f"{len(sessions)} sessions, {len(found)} faults")
    assert not found, f"{len(found)} faults, the first: " + "\n".join(found[:10])
