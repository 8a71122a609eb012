"""Agents that name no session and whose requests do not begin with their whole last history."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Project
from accounts.services.gateway import gateway_update
from gateway.calls import Call
from gateway.recording.record import call_record
from sessions.models import AgentSession, ClientHistory, HistoryPoint
from sessions.selectors.convert import message_body
from sessions.selectors.redaction import redaction_of
from sessions.services.reconcile.find import root_of_caller
from sessions.services.reconcile.points import points_expire
from sessions.services.sessions.lifecycle import session_delete
from tests.api.client import Api
from tests.api.statements import statements
from tests.gateway.double import Provider
from tests.gateway.openai_talk import chat_whole
from tests.gateway.running import Running
from tests.gateway.test_recording import stored

JSON = dict[str, Any]

pytestmark = pytest.mark.slow


def user(words: str) -> JSON:
    return {"role": "user", "content": words}


def assistant(words: str) -> JSON:
    return {"role": "assistant", "content": words}


#: A long answer of which no other conversation has the same.
ANSWER = "Answer {}: the function opens the file, reads all lines, and returns those that match the pattern."


class Agent:
    """A client that sends messages without naming its session."""

    def __init__(self, gateway: Running, provider: Provider, api_key: str) -> None:
        self.gateway, self.provider = gateway, provider
        self.headers = {"x-contextapp-key": api_key, "authorization": "Bearer sk"}
        self.numbers = count()
        self.system: str | None = None

    def ask(self, *messages: JSON, answer: str = ANSWER) -> JSON:
        """Send the messages after a system prompt, which differs in each call if none is set."""
        message = assistant(answer.format(next(self.numbers)))
        self.send(*messages, answer=message)
        return message

    def send(self, *messages: JSON, answer: JSON) -> None:
        self.provider.otherwise = lambda received: chat_whole(answer, prompt=len(received.body) // 4)
        system = {"role": "system", "content": self.system or f"Today is day {next(self.numbers)}."}
        body = json.dumps({"model": "gpt-5", "messages": [system, *messages]}).encode()
        response = self.gateway.call("/openai/v1/chat/completions", body, self.headers)
        assert response.status == 200, response.body
        self.gateway.settle()


@pytest.fixture
def agent(gateway: Running, provider: Provider, api_key: str) -> Agent:
    return Agent(gateway, provider, api_key)


def only_session(turns: int) -> AgentSession:
    session = AgentSession.objects.get()
    assert session.turn_count == turns
    return session


@pytest.mark.parametrize("reminders", [1, 3])
def test_messages_that_the_agent_sends_once(agent: Agent, reminders: int) -> None:
    history: list[JSON] = []
    for number in range(4):
        history.append(user(f"Read file {number}."))
        once = [user(f"It is 9:4{number}; reminder {each}.") for each in range(reminders)]
        history.append(agent.ask(*history, *once))
    assert only_session(turns=4).omitted_count == 3 * reminders


@pytest.mark.parametrize("merged", [False, True])
def test_an_answer_that_the_agent_replaces_with_a_message_about_its_error(agent: Agent, merged: bool) -> None:
    history: list[JSON] = []
    answers = []
    for number in range(4):
        history.append({"role": "user", "content": [{"type": "text", "text": f"Step {number}."}]})
        answers.append(agent.ask(*history))
        for error in range(number):
            words = f"Error {error}: the answer contains no tool call."
            if merged:
                added = {"type": "text", "text": words}
                history[-1] = {"role": "user", "content": [*history[-1]["content"], added]}
            else:
                history.append(user(words))
            answers.append(agent.ask(*history))
        history.append(answers[-1])
    session = only_session(turns=10)
    assert [message for message in stored(session) if message["role"] == "assistant"] == answers
    kept = session.messages.filter(omitted_from=None).order_by("position")
    assert [message_body(row) for row in kept][1:] == history


def test_a_message_that_is_longer_when_it_is_sent_first(agent: Agent) -> None:
    history: list[JSON] = []
    for number in range(4):
        question = f"What does file {number} do?"
        answer = agent.ask(*history, user(f"File {number}: …\n\n{question}"))
        history += [user(question), answer]
    session = only_session(turns=4)
    assert [message for message in stored(session) if message["role"] == "assistant"] == history[1::2]


def test_a_result_that_the_agent_shortens_later(agent: Agent) -> None:
    history = [user("Find the bug.")]
    for number in range(8):
        history.append(agent.ask(*history))
        history.append(user(f"Output {number}: " + "line " * 50))
        if number >= 3:
            history[2 * number - 4] = user("(old output omitted)")
    only_session(turns=8)


def test_a_rewind_is_a_fork(agent: Agent) -> None:
    history: list[JSON] = []
    for number in range(4):
        history.append(user(f"Step {number}."))
        history.append(agent.ask(*history, answer="Done."))
    rewound = [*history[:4], user("Another step.")]
    rewound.append(agent.ask(*rewound, answer="Done."))
    rewound.append(user("Go on."))
    rewound.append(agent.ask(*rewound, answer="Fine."))
    trunk, fork = AgentSession.objects.order_by("created_at")
    assert (fork.parent, fork.forked_at) == (trunk, 5)
    assert (stored(trunk)[1:], stored(fork)[1:]) == (history, rewound)


@pytest.mark.parametrize("kept", [[], [user("Begin.")]], ids=["last", "first and last"])
def test_an_agent_that_drops_its_first_messages(agent: Agent, kept: list[JSON]) -> None:
    """It also does so after its points have expired: its next request begins with the whole last one."""
    agent.system = "You are a reader."
    history, sent = [*kept], [*kept]
    for number in range(6):
        if number == 5:
            points_expire(now=timezone.now() + timedelta(days=31))
            assert not HistoryPoint.objects.exists()
        else:
            sent = [*kept, *sent[len(kept) :][-4:]]
        sent.append(user(f"Read file {number}."))
        sent.append(agent.ask(*sent))
        history += sent[-2:]
    session = only_session(turns=6)
    assert stored(session)[1:] == history
    assert HistoryPoint.objects.exists()
    session_delete(session=session)
    assert not HistoryPoint.objects.exists()


def test_an_agent_that_replaces_its_first_messages_with_a_summary(agent: Agent, api: Api) -> None:
    agent.system, history = "You are a reader.", [user("Read all files.")]
    for number in range(8):
        if number % 4 == 3:
            history = [user(f"We have read {number} files."), *history[-4:]]
        function = {"name": "read", "arguments": json.dumps({"path": f"{number}.py"})}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        answer = {"role": "assistant", "content": None, "tool_calls": [call]}
        agent.send(*history, answer=answer)
        history += [answer, {"role": "tool", "tool_call_id": f"call_{number}", "content": "line"}]
    session = only_session(turns=8)
    assert [row.trigger for row in session.compactions.all()] == ["client", "client"]
    assert api.get(f"sessions/{session.external_id}/prompt/").json()["messages"][1:] == history[:-1]


def test_an_earlier_answer_as_an_example_does_not_continue_its_session(agent: Agent) -> None:
    agent.system, first = "You write SQL.", user("Which customers ordered article 1?")
    answer = agent.ask(first)
    agent.ask(user("How many customers?"), assistant("SELECT …"), first, answer, user("And article 2?"))
    assert [session.turn_count for session in AgentSession.objects.all()] == [1, 1]


@pytest.mark.parametrize("examples", [0, 4])
def test_an_agent_with_a_name_that_changes_its_first_messages(agent: Agent, api: Api, examples: int) -> None:
    """aider sends a map of the repository before the conversation, and the files after it."""
    agent.headers["x-session-id"] = "s"
    agent.system, rules = "You are an expert who edits files. " * 5, {"role": "system", "content": "Rules."}
    first = [each for number in range(examples) for each in (user(f"Example {number}"), assistant("Done."))]
    done, sent = list[JSON](), list[JSON]()
    for number in range(4):
        agent.system += f"It is 9:4{number}."
        repository = [user(f"Map {number}"), assistant("I will not edit these files without asking first.")]
        files = [user(f"Files {number}"), assistant("I will edit these files and no other ones, as you say.")]
        question = user(f"Question {number}")
        sent = [*first, *repository, *done, *files, question, rules]
        sent.append(agent.ask(*sent))
        done += [question, sent[-1], user(f"I committed {number}."), assistant("Ok.")]
    session = only_session(turns=4)
    assert [row.trigger for row in session.compactions.all()] == ["client"] * 3
    assert api.get("sessions/s/prompt/").json()["messages"][1:] == sent
    agent.ask(*sent[:-3], user("Another question"), rules)
    assert AgentSession.objects.exclude(pk=session.pk).get().forked_at is not None


def test_conversations_with_the_same_numbered_calls_are_separate(agent: Agent) -> None:
    """Some models number their calls, so that another conversation has the same ids."""
    agent.headers["x-session-id"] = "s"
    agent.system = "You are an expert who edits files. " * 5
    for words, commands in {"Fix the bug.": "ls; cat a.py", "Write a test.": "pwd; cat a.py; date"}.items():
        history = [user(words)]
        for number, command in enumerate(commands.split("; ")):
            function = {"name": "bash", "arguments": json.dumps({"command": command})}
            call = {"id": f"functions.bash:{number}", "type": "function", "function": function}
            answer = {"role": "assistant", "content": None, "tool_calls": [call]}
            agent.send(*history, answer=answer)
            history += [answer, {"role": "tool", "tool_call_id": call["id"], "content": f"{words} {number}"}]
    session = AgentSession.objects.get(external_id="s")
    assert (session.turn_count, session.compactions.count()) == (2, 0)


def test_another_agent_that_gets_the_end_of_a_conversation_has_its_own_session(agent: Agent) -> None:
    agent.system, history = "You are a reader.", list[JSON]()
    for number in range(4):
        history.append(user(f"Read file {number}."))
        history.append(agent.ask(*history))
    agent.system = "Is the answer polite?"
    agent.ask(*history[-2:], user("Check."))
    agent.system = "You are a reader."
    agent.ask(user("Read file 3."), assistant("Another answer. " * 9), user("Go on."))
    assert [session.turn_count for session in AgentSession.objects.order_by("created_at")] == [4, 1, 1]


def test_a_call_is_recorded_again_after_the_gateway_was_stopped(
    provider: Provider, api_key: str, tmp_path: Path, transactional_db: None
) -> None:
    def record(call: Call) -> None:
        call_record(call)
        call_record(call)

    with Running(upstream=provider.url, spool=tmp_path, write=record) as gateway:
        Agent(gateway, provider, api_key).ask(user("Begin."))
    only_session(turns=1)


def test_other_conversations_with_the_same_beginning(agent: Agent) -> None:
    """Samples of one request, requests for a title, and examples that are part of the prompt."""
    first, example = user("Is the sky blue?"), [user("Is 1 even?"), assistant("No."), user("Is 2 even?")]
    for answer in ("Yes.", "Yes.", "No."):
        agent.ask(first, answer=answer)
        agent.ask(*example, user("Now."), answer="Yes.")
    agent.ask(user("Write a title: Is the sky blue?"), answer="Sky")
    agent.ask(user("Is 1 even?"), assistant("No."), user("Is 4 even?"), answer="Yes.")
    assert set(AgentSession.objects.values_list("turn_count", "parent")) == {(1, None)}
    assert AgentSession.objects.count() == 8


def test_a_question_that_several_conversations_may_have_had_is_a_new_session(agent: Agent) -> None:
    refusal = "I could not find this in the documentation. Please contact the support at any time. " * 2
    for number in range(2):
        agent.ask(user(f"Context: …\n\nQuestion {number}?"), answer=refusal)
    agent.ask(user("Question 0?"), assistant(refusal), user("Context: …\n\nAnd now?"))
    assert [session.turn_count for session in AgentSession.objects.all()] == [1, 1, 1]


@pytest.mark.parametrize("once", [True, False], ids=["sent once", "longer"])
def test_a_session_is_compacted(agent: Agent, project: Project, once: bool) -> None:
    gateway_update(project=project, changes={"mode": "compact", "budget_tokens": 6_000})
    history: list[JSON] = []
    for number in range(12):
        question = user(f"{number}: " + f"word{number} " * 300)
        last = [question, user(f"It is 9:{number}.")] if once else [user(f"Read: {question['content']}")]
        history += [question, agent.ask(*history, *last)]
    session = only_session(turns=12)
    assert session.compactions.filter(trigger="hard", state="done").exists()
    assert not session.compactions.filter(trigger="client").exists()


def test_the_number_of_queries_does_not_depend_on_the_length(agent: Agent, project: Project) -> None:
    history: list[JSON] = []
    for number in range(4):
        history += [user(f"Step {number}."), agent.ask(*history, user(f"Step {number}."), user("Be brief."))]
        body = json.dumps({"messages": [{"role": "system", "content": "x"}, *history, user("Next.")]})
        caller = ClientHistory.objects.values_list("caller", flat=True).get()
        find = partial(
            root_of_caller,
            project_id=project.pk,
            caller=caller,
            body=body.encode(),
            redaction=redaction_of(project),
        )
        assert find() == only_session(turns=number + 1)
        assert len(statements(find)) == 3
