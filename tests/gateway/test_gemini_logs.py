"""Logs of Gemini CLI whose calls the gateway has recorded: no id occurs in both."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.db.models import Sum
from django.test import Client
from django.utils import timezone

from accounts.models import Project
from importers.base import LogFile
from sessions.api.imports import views
from sessions.models import AgentSession, Turn
from sessions.selectors.redaction import redaction_of
from sessions.services.imports import uploads
from sessions.services.imports.logs import log_import
from sessions.services.imports.reader import Reader
from tests.api.test_import_jobs import run
from tests.gateway.double import Provider
from tests.gateway.gemini_talk import USAGE, said
from tests.gateway.running import Running
from tests.gateway.test_gemini import Agent
from tests.importers.logs import jsonl
from tests.locking import blocking

JSON = dict[str, Any]


class GeminiCli(Agent):
    """Gemini CLI, which writes a log of its conversation."""

    def __init__(self, gateway: Running, provider: Provider, api_key: str, *, name: str = "s-1") -> None:
        super().__init__(gateway, provider, api_key)
        self.headers["user-agent"] = "GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64; terminal)"
        facts = {"sessionId": name, "projectHash": "ab12", "startTime": _now(), "kind": "main"}
        self.log: list[JSON] = [facts, self.record("user", self.history[0]["parts"])]

    def say(self, *parts: JSON, **fields: Any) -> Any:
        response = super().say(*parts, **fields)
        said = self.history[-1]["parts"]
        text = "".join(part.get("text", "") for part in said)
        calls = [{**part["functionCall"], "status": "success"} for part in said if "functionCall" in part]
        self.log.append(self.record("gemini", text, tokens=self.tokens(), toolCalls=calls))
        return response

    def record(self, kind: str, content: Any, **fields: Any) -> JSON:
        return {"id": str(uuid4()), "timestamp": _now(), "type": kind, "content": content} | fields

    def tokens(self) -> JSON:
        prompt = len(self.provider.received[-1].body) // 4
        output, thoughts = USAGE["candidatesTokenCount"], USAGE["thoughtsTokenCount"]
        return {"input": prompt, "cached": prompt * 9 // 10, "output": output, "thoughts": thoughts}

    def work(self, number: int, **options: Any) -> Any:
        response = super().work(number, **options)
        [call] = self.log[-1]["toolCalls"]
        call["result"] = self.history[-1]["parts"]
        return response


def _now() -> str:
    return timezone.now().isoformat().replace("+00:00", "Z")


@pytest.fixture
def agent(gateway: Running, provider: Provider, api_key: str) -> GeminiCli:
    return GeminiCli(gateway, provider, api_key)


def import_log(project: Project, records: list[JSON], name: str = "session.jsonl") -> None:
    data = jsonl(*records).data
    log = Reader(redaction=redaction_of(project)).read_file(LogFile(name=name, data=data))
    for result in log_import(project=project, log=log):
        assert not isinstance(result, Exception), result


def billed() -> tuple[int, int | None]:
    """Return the number and the cost of the calls that are billed."""
    turns = Turn.objects.filter(billed=True, prompt_reported__isnull=False)
    cost: int | None = turns.aggregate(sum=Sum("cost_microusd"))["sum"]
    return turns.count(), cost


def test_a_log_becomes_part_of_the_recorded_session(agent: GeminiCli, project: Project) -> None:
    agent.work(0)
    agent.work(1, text="The next file.")
    before = billed()
    import_log(project, [*agent.log, {"$set": {"summary": "Files", "directories": ["/src"]}}])
    session = AgentSession.objects.get()
    assert (session.external_id, session.title, session.metadata) == ("s-1", "Files", {"cwd": "/src"})
    assert billed() == before == (2, session.cost_microusd)
    agent.say({"text": "Both files define handlers."})
    before = billed()
    import_log(project, agent.log)
    session = AgentSession.objects.get()
    assert billed() == before == (3, session.cost_microusd)
    assert (session.turn_count, session.message_count) == (3, 6)


def test_calls_before_the_gateway_was_used_are_added(agent: GeminiCli, project: Project) -> None:
    agent.work(0)
    earlier = agent.record("gemini", "Hello.", tokens={"input": 90, "output": 2}, model="gemini-2.5-pro")
    agent.log.insert(1, earlier)
    import_log(project, agent.log)
    session = AgentSession.objects.get()
    assert billed() == (2, session.cost_microusd)


def test_a_session_that_was_imported_before_does_not_bill_recorded_calls(
    agent: GeminiCli, project: Project
) -> None:
    agent.work(0)
    AgentSession.objects.all().delete()  # it is as if the call had not passed through the gateway
    import_log(project, agent.log)
    agent.work(1)
    agent.say({"text": "Both files define handlers."})
    before = billed()
    import_log(project, agent.log)
    assert billed() == before
    imported = AgentSession.objects.get(external_id="s-1")
    assert [turn.billed for turn in imported.turns.order_by("index")] == [True, False, False]


@pytest.mark.slow
@pytest.mark.parametrize(("calls", "state"), [("rrrr", "unchanged"), ("rroo", "grown"), ("oooorrrr", "new")])
def test_a_log_that_is_imported_in_steps(
    agent: GeminiCli, monkeypatch: pytest.MonkeyPatch, calls: str, state: str
) -> None:
    """Its calls are recorded (r), or others (o). The first of several steps contains two of them."""
    monkeypatch.setattr(views, "SMALL_BYTES", 0)
    monkeypatch.setattr(uploads, "STEP_MESSAGES", 3)
    for number, kind in enumerate(calls):
        if kind == "r":
            agent.work(number)
        else:
            tokens = {"input": 90, "output": 2}
            call = agent.record("gemini", f"Hello {number}.", tokens=tokens, model="gemini-2.5-pro")
            agent.log.append(call)
    url, key = "/api/v1/imports/?name=session.jsonl", agent.headers["x-contextapp-key"]
    data, headers = jsonl(*agent.log).data, {"authorization": f"Bearer {key}"}
    job = run(Client().generic("POST", url, data, "application/octet-stream", headers=headers).json()["id"])
    assert (job.state, [row.state for row in job.sessions.all()]) == ("done", [state])
    assert billed()[0] == len(calls)
    assert AgentSession.objects.count() == (2 if state == "new" else 1)
    assert AgentSession.objects.filter(external_id="s-1").exists()


def test_equal_conversations_are_joined_with_their_own_logs(
    gateway: Running, provider: Provider, api_key: str, project: Project
) -> None:
    agents = [GeminiCli(gateway, provider, api_key, name=name) for name in ("s-1", "s-2", "s-3")]
    for agent in agents:
        agent.say({"text": "Done."})
    for agent in reversed(agents):
        import_log(project, agent.log)
    sessions = AgentSession.objects.order_by("started_at")
    assert [session.external_id for session in sessions] == ["s-1", "s-2", "s-3"]
    assert billed()[0] == 3


def test_a_call_with_another_answer_is_another_call(agent: GeminiCli, project: Project) -> None:
    agent.say({"text": "Done."})
    agent.log[-1]["content"] = "Finished."
    import_log(project, agent.log)
    assert (AgentSession.objects.count(), billed()[0]) == (2, 2)


def test_a_recorded_call_is_one_call_of_the_log(agent: GeminiCli, project: Project) -> None:
    """The second call, which is equal, did not pass through the gateway."""
    agent.say({"text": "Done."})
    import_log(project, [*agent.log, agent.log[-1] | {"id": str(uuid4())}])
    assert (AgentSession.objects.count(), billed()[0]) == (1, 2)


def test_the_log_of_a_rewound_conversation_names_the_session_with_its_beginning(
    agent: GeminiCli, project: Project
) -> None:
    for number in range(3):
        agent.work(number)
    agent.history[3:] = [said("Only the tests.")]  # it continues in a fork, which copies the first call
    for number in range(3, 8):
        agent.work(number)
    fork = AgentSession.objects.get(parent__isnull=False)
    first = AgentSession.objects.get(parent=None)
    assert fork.turn_count > first.turn_count
    again = agent.log[2] | {"id": str(uuid4())}  # an equal call that did not pass through the gateway
    import_log(project, [*agent.log, again])
    first.refresh_from_db()
    assert first.external_id == "s-1"
    assert billed()[0] == 9


def test_the_log_of_a_sub_agent_names_its_parent(
    gateway: Running, provider: Provider, api_key: str, project: Project
) -> None:
    main, child = (GeminiCli(gateway, provider, api_key, name=name) for name in ("s-1", "s-2"))
    child.log[0]["kind"] = "subagent"
    main.work(0)
    child.say({"text": "The tests pass."})
    for agent, name in (child, "chats/s-1/s-2.jsonl"), (main, "chats/s-1.jsonl"):
        import_log(project, agent.log, name)
    sessions = {session.external_id: session for session in AgentSession.objects.select_related("parent")}
    assert sessions.keys() == {"s-1", "s-2"}
    assert (sessions["s-2"].parent, sessions["s-1"].parent) == (sessions["s-1"], None)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_log_is_imported_while_another_session_gets_its_name(agent: GeminiCli, project: Project) -> None:
    agent.work(0)
    before = billed()
    with blocking(partial(import_log, project, agent.log)) as jobs:
        started = agent.log[0]["startTime"]
        AgentSession.objects.create(
            project=project,
            external_id="s-1",
            started_at=started,
            last_active_at=started,
            origin="gemini-cli",
        )
    [job] = jobs
    job.result()
    assert AgentSession.objects.filter(external_id="s-1").count() == 1
    assert billed() == before
