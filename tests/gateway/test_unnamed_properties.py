"""Agents that name no session, at random times and in random order, never share one."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import Project
from sessions.models import AgentSession
from sessions.selectors.convert import message_body
from sessions.selectors.redaction import redaction_of
from sessions.services.push.values import Target
from sessions.services.reconcile.find import root_of_caller
from sessions.services.reconcile.history import history_reconcile
from sessions.services.reconcile.values import Request, Sent
from sessions.services.sessions.lifecycle import NewSession, session_create
from tests.plugins.examples import examples

JSON = dict[str, Any]

pytestmark = pytest.mark.django_db

CALLER = b"caller"
NUMBERS = count()


def user(words: str) -> JSON:
    return {"role": "user", "content": words}


def record(project: Project, messages: list[JSON], words: str) -> JSON:
    """Record a call and return its answer."""
    answer = {"role": "assistant", "content": words}
    body, redaction = json.dumps({"messages": messages}).encode(), redaction_of(project)
    session = root_of_caller(project_id=project.pk, caller=CALLER, body=body, redaction=redaction)
    if session is None:
        session, _ = session_create(project_id=project.pk, new=NewSession(format="openai"))
    request = Request(
        body=body,
        redaction=redaction,
        read=lambda _: Sent(answers=[answer], caller=CALLER),
        idempotency_key=f"call-{next(NUMBERS)}",
    )
    target = Target(key_id=None, project_id=project.pk, session_id=session.pk)
    history_reconcile(target, request)
    return answer


@dataclass
class Agent:
    """A client. Its name is in each of its messages, except the first one."""

    name: str
    kind: str
    history: list[JSON] = field(default_factory=lambda: [user("Begin.")])

    def step(self, project: Project, words: str) -> None:
        """Make a call, and add the answer and the next question to the history."""
        if self.kind == "window":
            self.history = self.history[-5:]
        sent = [*self.history]
        if self.kind == "once":
            sent.append(user(f"It is {next(NUMBERS)}. <{self.name}>"))
        if self.kind == "longer":
            sent[-1] = user(f"Context {next(NUMBERS)}: {sent[-1]['content']} <{self.name}>")
        self.history += [record(project, sent, words), user(f"Next. <{self.name}>")]

    def rewind(self, answers: int) -> None:
        self.history = [*self.history[: 1 + 2 * answers], user(f"Instead. <{self.name}>")][
            : len(self.history)
        ]


def names(session: AgentSession) -> set[str]:
    """Return the names of the agents with messages in a session."""
    words = [message_body(row)["content"] for row in session.messages.select_related("blob")]
    return {name for each in words for name in re.findall("<.>", each)}


kinds = st.sampled_from(["plain", "once", "longer", "window"])
schedules = st.lists(st.integers(0, 3), min_size=8, max_size=20)


@pytest.mark.slow
@settings(
    max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(chosen=st.lists(kinds, min_size=4, max_size=4), schedule=schedules)
def test_each_agent_has_one_session(project: Project, chosen: list[str], schedule: list[int]) -> None:
    project.agent_sessions.all().delete()
    agents = [Agent(name=str(number), kind=kind) for number, kind in enumerate(chosen)]
    for number in schedule:
        agents[number].step(project, f"Answer {next(NUMBERS)}: {'it is unlike all others, ' * 4}and long.")
    assert AgentSession.objects.count() == len(set(schedule))
    assert all(len(names(session)) <= 1 for session in AgentSession.objects.all())


actions = st.tuples(
    st.integers(0, 3),
    st.sampled_from(["Yes.", "I cannot answer that. " * 5, ""]),
    st.sampled_from([0, 0, 0, 1, 2, -1]),
)


@pytest.mark.slow
@settings(
    max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(chosen=st.lists(kinds, min_size=4, max_size=4), work=st.lists(actions, min_size=4, max_size=24))
def test_agents_with_equal_answers_never_share_a_session(
    project: Project, chosen: list[str], work: list[tuple[int, str, int]]
) -> None:
    project.agent_sessions.all().delete()
    agents = [Agent(name=str(number), kind=kind) for number, kind in enumerate(chosen)]
    for number, words, rewound in work:
        agent = agents[number]
        if rewound < 0:
            Agent(agent.name, agent.kind, [*agent.history]).step(
                project, f"An answer that got lost. {next(NUMBERS)}"
            )
        if rewound > 0:
            agent.rewind(rewound)
        agents[number].step(
            project, words or f"Answer {next(NUMBERS)}, which is long enough to be unlike all other answers."
        )
    assert all(len(names(session)) <= 1 for session in AgentSession.objects.all())
