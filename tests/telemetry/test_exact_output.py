"""Output tokens that a log lacks: Claude Code logs the count at which a response began to stream."""

from __future__ import annotations

import pytest

from accounts.models import Project
from sessions.models import AgentSession
from sessions.selectors.redaction import redaction_of
from sessions.services.imports.logs import log_import
from sessions.services.imports.reader import Reader
from tests.importers.logs import SESSION, block, jsonl, text, user
from tests.telemetry.events import export, pairs, post

pytestmark = pytest.mark.django_db

ANSWER = " ".join(f"word{number} of the answer" for number in range(120))
CALL = {
    "session.id": SESSION,
    "event.name": "api_request",
    "event.timestamp": "2026-01-05T10:00:01Z",
    "model": "claude-opus-4-5",
    "input_tokens": 3,
    "cache_read_tokens": 500,
    "cache_creation_tokens": 40,
    "output_tokens": 1_000,
    "cost_usd_micros": 25_515,
    "duration_ms": 900,
    "request_id": "req_1",
    "query_source": "repl_main_thread",
}


def import_log(project: Project) -> None:
    log = jsonl(user("Go", "u1"), block("msg_1", text(ANSWER), "a1", output=2, requestId="req_1"))
    log_import(project=project, log=Reader(redaction=redaction_of(project)).read_file(log))


def report(key: str) -> None:
    body = {"stringValue": "claude_code.api_request"}
    response = post(key, export({"timeUnixNano": "0", "body": body, "attributes": pairs(CALL)}))
    assert response.content == b"{}"


@pytest.mark.parametrize(
    "order",
    ["LT", "TL", *(pytest.param(each, marks=pytest.mark.slow) for each in ("LTL", "TLT", "LTLT", "TLTL"))],
)
def test_tokens_and_cost_are_those_of_telemetry_in_any_order(
    order: str, project: Project, api_key: str
) -> None:
    for source in order:
        if source == "L":
            import_log(project)
        else:
            report(api_key)
    session = AgentSession.objects.get()
    turn = session.turns.get()
    assert (turn.output_tokens, turn.output_reported, turn.cost_microusd) == (1_000, None, 25_515)
    assert (session.output_tokens, session.cost_microusd) == (1_000, 25_515)


def test_without_telemetry_they_are_estimated(project: Project) -> None:
    import_log(project)
    turn = AgentSession.objects.get().turns.get()
    assert turn.output_reported == 2
    assert (turn.output_tokens or 0) > 500


@pytest.mark.slow
@pytest.mark.parametrize("order", ["LT", "TL", "TLT"])
@pytest.mark.parametrize("has_ids", [True, False], ids=["ids", "no ids"])
def test_calls_of_a_sub_agent(order: str, has_ids: bool, project: Project, api_key: str) -> None:
    """Telemetry and the log name the sub-agent differently. Some providers send no request ids."""
    agent = {"isSidechain": True, "agentId": "a1"}
    id = {"requestId": "req_1"} if has_ids else {}
    logs = (
        jsonl(user("Go", "u0"), name=f"{SESSION}.jsonl"),
        jsonl(
            user("Find it", "u1", **agent),
            block("msg_1", text(ANSWER), "a1", output=2, **agent, **id),
            name="agent-a1.jsonl",
        ),
    )
    call = CALL | {"query_source": "agent:builtin:Explore", "agent.name": "Explore"}
    record = {"attributes": pairs({k: v for k, v in call.items() if has_ids or k != "request_id"})}
    for source in order:
        if source == "T":
            body = {"stringValue": "claude_code.api_request"}
            assert post(api_key, export({"timeUnixNano": "0", "body": body, **record})).content == b"{}"
            continue
        for log in logs:
            log_import(project=project, log=Reader(redaction=redaction_of(project)).read_file(log))
    [session] = AgentSession.objects.filter(turn_count__gt=0, output_tokens__gt=0)
    assert session.external_id == f"{SESSION}:agent-a1"
    assert (session.output_tokens, session.cost_microusd) == (1_000, 25_515)
