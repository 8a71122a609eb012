"""A call that telemetry, the gateway and a log report is counted once, in any order."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from accounts.models import Project
from gateway.calls import Call, KeyProof
from gateway.recording.record import _record
from importers.base import LogFile
from sessions.models import AgentSession, Turn
from sessions.selectors.redaction import redaction_of
from sessions.selectors.tools.usage import is_counting
from sessions.services.imports.logs import log_import
from sessions.services.imports.reader import Reader
from sessions.services.sessions.comments import comment_create
from sessions.services.tools.counting import tools_count
from sessions.store.bodies import json_bytes
from tests.api.client import Api
from tests.gateway.anthropic_talk import USAGE
from tests.importers.logs import jsonl
from tests.telemetry import events
from tests.telemetry.events import SESSION, at, call, codex_call, pairs, post, send

pytestmark = pytest.mark.django_db

ANSWERS = ["I look.", "Still looking.", "Done."]
JSON = dict[str, Any]


def history(number: int) -> list[JSON]:
    """Return the messages of a request: those before, and a new one."""
    found: list[JSON] = []
    for index in range(number):
        found.append({"role": "user", "content": f"Question {index}"})
        found.append({"role": "assistant", "content": [{"type": "text", "text": ANSWERS[index]}]})
    return [*found, {"role": "user", "content": f"Question {number}"}]


def usage(number: int) -> JSON:
    return USAGE | {"cache_read_input_tokens": 4_000 + number, "output_tokens": 57}


class Sources:
    """Reports the same three calls of one session in different ways."""

    def __init__(self, project: Project, key: str, *, calls: int = len(ANSWERS)) -> None:
        self.project, self.key, self.calls = project, key, range(calls)
        self.pushes_usage = self.logs_usage = self.has_ids = True
        self.pushes_ids = False

    def id(self, number: int) -> str:
        """Return the request id of a call, "" if the provider sends none."""
        return f"req_{number}" if self.has_ids else ""

    def telemetry(self) -> None:
        for number in self.calls:
            tokens = {"cache_read_tokens": 4_000 + number}
            send(self.key, call(self.id(number), number, **tokens))

    def push(self) -> None:
        api = Api(self.key)
        api.post("sessions/", {"id": SESSION, "format": "anthropic", "if_exists": "return"})
        for number in self.calls:
            answer = {"role": "assistant", "content": [{"type": "text", "text": ANSWERS[number]}]}
            messages = [{"role": "user", "content": f"Question {number}"}, answer]
            body: JSON = {"messages": messages, "model": "claude-sonnet-4-5"}
            body |= {"usage": usage(number)} if self.pushes_usage else {}
            body |= {"request_id": self.id(number)} if self.pushes_ids else {}
            assert api.post(f"sessions/{SESSION}/turns/", body).status_code == 201

    def gateway(self) -> None:
        for number in self.calls:
            self.gateway_call(number)

    def gateway_call(self, number: int, **headers: str) -> None:
        proof = KeyProof.of(self.key)
        assert proof is not None
        answer = {
            "id": f"msg_{number}",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": ANSWERS[number]}],
            "usage": usage(number),
        }
        tools = [{"name": "Bash", "input_schema": {"type": "object"}}]
        body = {"model": "claude-sonnet-4-5", "messages": history(number), "tools": tools}
        _record(
            Call(
                id=f"call-{number}",
                at=at(number).timestamp(),
                provider="anthropic",
                endpoint="messages",
                upstream="https://api.anthropic.com",
                mode="observe",
                key=proof,
                headers={"x-claude-code-session-id": SESSION, "user-agent": "claude-cli/2"} | headers,
                body=json_bytes(body),
                status=200,
                response_type="application/json",
                response=json_bytes(answer),
                is_complete=True,
                request_id=self.id(number),
            )
        )

    def log(self) -> None:
        lines: list[JSON] = []
        base = {"sessionId": SESSION, "cwd": "/src"}
        for number in self.calls:
            time = {"timestamp": at(number).isoformat()}
            user = {"role": "user", "content": f"Question {number}"}
            answer = {
                "id": f"msg_{number}",
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "content": [{"type": "text", "text": ANSWERS[number]}],
            } | ({"usage": usage(number)} if self.logs_usage else {})
            lines.append({"type": "user", "uuid": f"u{number}", "message": user} | base | time)
            lines.append(
                {"type": "assistant", "uuid": f"a{number}", "message": answer, "requestId": self.id(number)}
                | base
                | time
            )
        self.import_file(jsonl(*lines, name=f"{SESSION}.jsonl"))

    def import_file(self, file: LogFile) -> None:
        log = Reader(redaction=redaction_of(self.project)).read_file(file)
        for result in log_import(project=self.project, log=log):
            assert not isinstance(result, Exception), result


@pytest.fixture
def sources(project: Project, api_key: str) -> Sources:
    return Sources(project, api_key)


def cost_once() -> int:
    return sum(round(12 * 3 + (4_000 + n) * 0.3 + 300 * 3.75 + 57 * 15) for n in range(len(ANSWERS)))


def check_once(*, messages: int = 6) -> AgentSession:
    """Expect one session, with each call and its cost once. The client reports another cost."""
    [session] = AgentSession.objects.all()
    turns = list(session.turns.order_by("index"))
    assert [turn.request_id for turn in turns] == ["req_0", "req_1", "req_2"]
    assert [turn.cache_read_tokens for turn in turns] == [4_000, 4_001, 4_002]
    assert session.turn_count == 3
    assert session.message_count == session.messages.count() == messages
    assert session.cache_read_tokens == 12_003
    assert session.output_tokens == 3 * 57
    assert session.cost_microusd == sum(turn.cost_microusd or 0 for turn in turns)
    return session


@pytest.mark.slow
@pytest.mark.parametrize("order", list(permutations(("telemetry", "gateway", "log"))), ids=" then ".join)
def test_sources_in_any_order_give_one_session(sources: Sources, order: tuple[str, ...]) -> None:
    """The beginnings of these orders are all orders of two sources."""
    for position, name in enumerate(order):
        getattr(sources, name)()
        if position:
            session = check_once()
            assert "log" not in order[: position + 1] or session.metadata["cwd"] == "/src"
    for name in reversed(order):
        if name != "gateway":
            getattr(sources, name)()
    check_once()


PUSH_SOURCES = ("telemetry", "push", "gateway", "log")
PUSH_ORDERS = [
    pytest.param(order, id=" then ".join(order), marks=[pytest.mark.slow] if count > 2 else [])
    for count in (2, 3, 4)
    for order in permutations(PUSH_SOURCES, count)
    if "push" in order
]


class TestPushes:
    @pytest.fixture(autouse=True)
    def _now(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the other sources report the time at which the turns are pushed."""
        monkeypatch.setattr(events, "START", timezone.now())

    @staticmethod
    def check() -> None:
        """Expect one session, with each call, its cost and its messages once."""
        [session] = AgentSession.objects.all()
        calls = session.turns.filter(prompt_reported__isnull=False).order_by("index")
        assert sorted(turn.cache_read_tokens or 0 for turn in calls) == [4_000, 4_001, 4_002]
        assert session.cache_read_tokens == 12_003
        assert session.output_tokens == 3 * 57
        assert session.cost_microusd == sum(turn.cost_microusd or 0 for turn in calls) > 0
        assert session.turn_count == 3
        assert session.message_count == session.messages.count() == 6

    @pytest.mark.slow
    @pytest.mark.parametrize("order", list(permutations(PUSH_SOURCES)), ids=" then ".join)
    def test_pushes_and_other_sources_give_one_session(
        self, sources: Sources, order: tuple[str, ...]
    ) -> None:
        """The beginnings of these orders are all orders of fewer sources."""
        for position, name in enumerate(order):
            getattr(sources, name)()
            if position and "push" in order[: position + 1]:
                self.check()
        for name in order:
            if name != "push":
                getattr(sources, name)()
        self.check()

    @pytest.mark.parametrize("order", PUSH_ORDERS)
    def test_sources_that_overlap_in_part_give_each_call_once(
        self, project: Project, api_key: str, order: tuple[str, ...]
    ) -> None:
        for position, name in enumerate(order):
            calls = len(ANSWERS) if position in (0, len(order) - 1) or name == "gateway" else 2
            getattr(Sources(project, api_key, calls=calls), name)()
        [session] = AgentSession.objects.all()
        assert session.cache_read_tokens == 12_003
        assert session.output_tokens == 3 * 57
        assert session.message_count == session.messages.count() <= 6

    @pytest.mark.slow
    def test_telemetry_is_ahead_of_and_behind_pushes(self, sources: Sources) -> None:
        whole = sources.calls
        for number in whole:
            sources.calls = whole[number : number + 1]
            steps = (sources.telemetry, sources.push) if number % 2 else (sources.push, sources.telemetry)
            for step in steps:
                step()
        self.check()

    @pytest.mark.slow
    def test_a_log_adds_the_usage_of_turns_that_were_pushed_without(self, sources: Sources) -> None:
        sources.pushes_usage = False
        sources.push()
        for _ in range(2):
            sources.log()
            self.check()

    @pytest.mark.parametrize("order", list(permutations(("telemetry", "push"))), ids=" then ".join)
    def test_telemetry_adds_the_usage_of_turns_that_were_pushed_with_ids_only(
        self, sources: Sources, order: tuple[str, ...]
    ) -> None:
        sources.pushes_usage, sources.pushes_ids = False, True
        for name in (*order, "telemetry"):
            getattr(sources, name)()
        self.check()

    def test_a_log_without_usage_adds_facts_to_a_pushed_session(self, sources: Sources) -> None:
        sources.push()
        sources.logs_usage = False
        sources.log()
        self.check()
        assert AgentSession.objects.get().metadata["cwd"] == "/src"

    def test_a_log_without_a_pushed_call_is_rejected(self, project: Project, api_key: str) -> None:
        api = Api(api_key)
        api.post("sessions/", {"id": SESSION, "format": "anthropic"})
        api.post(f"sessions/{SESSION}/turns/", {"messages": history(0)})
        sources = Sources(project, api_key)
        with pytest.raises(AssertionError, match="pushed over the API"):
            sources.log()


@pytest.mark.slow
def test_telemetry_between_the_calls_of_the_gateway(sources: Sources) -> None:
    for number in sources.calls:
        send(sources.key, call(f"req_{number}", number, cache_read_tokens=4_000 + number))
        sources.gateway_call(number)
    check_once()


def test_calls_that_the_gateway_missed_are_added_by_the_log(sources: Sources) -> None:
    sources.gateway_call(0)
    sources.gateway_call(2)
    sources.log()
    session = AgentSession.objects.get()
    assert session.cache_read_tokens == 12_003
    assert session.turn_count == 3


@pytest.mark.slow
def test_calls_without_request_ids_that_the_gateway_records_late(sources: Sources) -> None:
    """Some providers send none. The log adds calls that the gateway records only afterwards."""
    sources.has_ids = False
    sources.gateway_call(0)
    sources.log()
    sources.calls = range(2)
    sources.telemetry()
    sources.gateway_call(1)
    sources.gateway_call(2)
    sources.calls = range(3)
    sources.telemetry()
    session = AgentSession.objects.get()
    assert (session.turn_count, session.cache_read_tokens, session.message_count) == (3, 12_003, 6)


def test_a_growing_log_keeps_the_calls_that_only_telemetry_reports(
    sources: Sources, project: Project, api_key: str
) -> None:
    Sources(project, api_key, calls=2).log()
    send(api_key, call("req_x", 60, input_tokens=77))
    Sources(project, api_key, calls=2).log()
    sources.log()
    session = AgentSession.objects.get()
    assert [turn.request_id for turn in session.turns.order_by("index")] == [
        "req_0", "req_1", "req_2", "req_x",
    ]  # fmt: skip
    assert session.uncached_tokens == 3 * 12 + 77
    assert session.message_count == 6


@pytest.mark.slow
def test_a_sub_agent_that_telemetry_and_the_log_name_differently(project: Project, api_key: str) -> None:
    send(
        api_key,
        call("req_main"),
        call("req_sub", 1, query_source="agent:builtin:Explore", **{"agent.name": "Explore"}),
    )
    answer = {
        "id": "msg_sub",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "Found."}],
        "usage": usage(0),
    }
    line = {"sessionId": SESSION, "isSidechain": True, "agentId": "a1", "timestamp": at(1).isoformat()}
    Sources(project, api_key).import_file(
        jsonl(
            line | {"type": "user", "uuid": "u", "message": {"role": "user", "content": "Find it"}},
            line | {"type": "assistant", "uuid": "a", "message": answer, "requestId": "req_sub"},
            name="agent-a1.jsonl",
        )
    )
    names = AgentSession.objects.order_by("started_at").values_list("external_id", "turn_count")
    assert list(names) == [(SESSION, 1), (f"{SESSION}:agent-a1", 1)]


@pytest.mark.slow
def test_a_sub_agent_whose_log_is_imported_before_the_gateway_records_it(sources: Sources) -> None:
    sources.gateway_call(0)
    lines: list[JSON] = []
    for number in (1, 2):
        line = {
            "sessionId": SESSION,
            "isSidechain": True,
            "agentId": "a1",
            "timestamp": at(number).isoformat(),
        }
        content = [{"type": "text", "text": ANSWERS[number]}]
        answer = {"id": f"msg_{number}", "role": "assistant", "content": content, "usage": usage(number)}
        user = {"role": "user", "content": f"Question {number}"}
        lines.append(line | {"type": "user", "uuid": f"u{number}", "message": user})
        lines.append(
            line
            | {"type": "assistant", "uuid": f"a{number}", "message": answer, "requestId": f"req_{number}"}
        )
    sources.import_file(jsonl(*lines, name="agent-a1.jsonl"))
    for number in (1, 2):
        sources.gateway_call(number, **{"x-claude-code-agent-id": "a1"})
    found = AgentSession.objects.order_by("started_at").values_list("external_id", "cache_read_tokens")
    assert list(found) == [(SESSION, 4_000), (f"{SESSION}:agent-a1", 4_001 + 4_002)]


class TestCodex:
    """Codex has no request ids: calls are matched by usage and time."""

    def log(self, project: Project, key: str, *, calls: int) -> None:
        lines: list[JSON] = [
            {"type": "session_meta", "payload": {"id": SESSION}},
            {"type": "turn_context", "payload": {"model": "gpt-5.1-codex"}},
        ]
        for number in range(calls):
            used = {
                "input_tokens": 1_000, "cached_input_tokens": 900, "output_tokens": 20,
                "reasoning_output_tokens": 5, "total_tokens": 1_020,
            }  # fmt: skip
            info = {"last_token_usage": used, "total_token_usage": {"total_tokens": 1_020 * (number + 1)}}
            content = [{"type": "output_text", "text": f"Answer {number}"}]
            item = {"type": "message", "role": "assistant", "content": content}
            lines += [
                {"type": "response_item", "payload": item},
                {"type": "event_msg", "payload": {"type": "token_count", "info": info}},
            ]
            for line in lines[-2:]:
                line["timestamp"] = at(10 * number).isoformat()
        Sources(project, key).import_file(jsonl(*lines, name=f"rollout-{SESSION}.jsonl"))

    @pytest.mark.parametrize("log_first", [False, True], ids=["telemetry first", "log first"])
    def test_equal_calls_are_matched_one_to_one(
        self, project: Project, api_key: str, log_first: bool
    ) -> None:
        if log_first:
            self.log(project, api_key, calls=2)
        for _ in range(2):
            send(api_key, codex_call(0), codex_call(10), codex_call(20))
        if not log_first:
            self.log(project, api_key, calls=2)
        [session] = AgentSession.objects.all()
        assert (session.turn_count, session.message_count, session.output_tokens) == (3, 2, 60)

    @pytest.mark.slow
    def test_the_id_survives_a_growing_log(self, project: Project, api_key: str) -> None:
        self.log(project, api_key, calls=2)
        events = [codex_call(0), codex_call(10), codex_call(20)]
        send(api_key, *events[:2])
        self.log(project, api_key, calls=3)
        send(api_key, *events)
        assert Turn.objects.count() == 3


@pytest.mark.slow
def test_spans_of_calls_that_passed_through_the_gateway(sources: Sources) -> None:
    """The gateway has no name for the session; the spans have another one than the gateway would choose."""
    sources.gateway()
    for number in sources.calls:
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": "talk",
            "gen_ai.response.id": f"msg_{number}",
            "gen_ai.usage.input_tokens": 4_312 + number,
        }
        span = {
            "traceId": "ab" * 16,
            "spanId": f"{number:016x}",
            "endTimeUnixNano": str(int(at(number).timestamp() * 1e9)),
            "attributes": pairs(attributes),
        }
        body = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
        assert post(sources.key, body, signal="traces").content == b"{}"
    check_once()


def test_comments_follow_their_call_when_a_log_adds_calls_before_it(
    sources: Sources, api_key: str, member: User
) -> None:
    send(api_key, call("req_1", 1))
    comment_create(session=AgentSession.objects.get(), turn=0, text="Expensive", author_id=member.pk)
    sources.log()
    session = AgentSession.objects.get()
    assert [turn.request_id for turn in session.turns.order_by("index")] == ["req_0", "req_1", "req_2"]
    assert [comment.turn for comment in session.comments.all()] == [1]


@pytest.mark.slow
def test_tools_are_counted_again_when_turns_move(sources: Sources, api_key: str) -> None:
    sources.gateway_call(0)
    send(api_key, call("req_1", 1))
    sources.gateway_call(2)
    tools_count(everywhere=True)
    session = AgentSession.objects.get()
    assert not is_counting(session=session)
    sources.gateway_call(1)
    assert is_counting(session=session)


def test_a_span_with_the_request_only_and_its_recorded_response(sources: Sources) -> None:
    """The response is stored once it is recorded, without counting the call again."""
    span = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "claude-sonnet-4-5",
        "gen_ai.response.id": "msg_0",
        "gen_ai.conversation.id": SESSION,
        "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Question 0"}]}]',
        "gen_ai.usage.input_tokens": 4_312,
        "gen_ai.usage.output_tokens": 57,
    }
    nanos = str(int(at(0).timestamp() * 1_000_000_000))
    record = {"traceId": "5b" * 16, "spanId": "1" * 16, "startTimeUnixNano": nanos, "endTimeUnixNano": nanos}
    export = {"resourceSpans": [{"scopeSpans": [{"spans": [record | {"attributes": pairs(span)}]}]}]}
    assert post(sources.key, export, signal="traces").status_code == 200
    before = AgentSession.objects.get()
    sources.gateway_call(0)
    session = AgentSession.objects.get()
    assert (session.message_count, session.output_tokens, session.cost_microusd) == (
        2,
        57,
        before.cost_microusd,
    )
    sources.gateway_call(1)
    assert AgentSession.objects.get().output_tokens == 2 * 57


@pytest.mark.parametrize("first", ["gateway", "telemetry"])
def test_a_call_of_codex_that_the_gateway_records_with_the_id_of_the_request(
    sources: Sources, first: str
) -> None:
    """Codex reports no id of the provider, but the gateway reads it from the response."""
    tokens = {"input_token_count": "4312", "cached_token_count": "4000", "cache_write_token_count": "300"}
    event = codex_call(output_token_count="57", model="claude-sonnet-4-5", **tokens)
    steps = [
        lambda: sources.gateway_call(0),
        lambda: send(sources.key, event),
        lambda: send(sources.key, event),
    ]
    for step in steps if first == "gateway" else [*steps[1:], steps[0]]:
        step()
    session = AgentSession.objects.get()
    assert (session.turn_count, session.cache_read_tokens) == (1, 4_000)
    assert session.turns.get().request_id == "req_0"
