"""A secret in any attribute of an export is stored, returned and logged nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from sessions.models import Turn
from tests.api.test_redaction import everything_stored
from tests.api.test_secret_fields import Secrets, with_secrets
from tests.telemetry.events import call, codex_call, event, export, pairs, post

pytestmark = pytest.mark.django_db

JSON = dict[str, Any]

RESOURCE = {"service.name": "shop", "service.version": "1", "team.id": "growth", "deployment": "eu"}
MODEL = {"gen_ai.request.model": "gpt-5", "gen_ai.response.model": "gpt-5", "gen_ai.response.id": "msg"}
USAGE = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 5}
USER = {"user.email": "ann@example.org", "gen_ai.conversation.id": "talk", "gen_ai.agent.name": "shop"}
TOOL_CALL = {"type": "tool_call", "id": "c1", "name": "ls", "arguments": {"path": "src"}}
OUTPUT = {"type": "tool_call_response", "id": "c1", "response": "a b"}
#: Values that are JSON text, as instrumentations send them.
STRUCTURED: JSON = {
    "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
    "gen_ai.input.messages": [
        {"role": "user", "parts": [{"type": "text", "content": "Hi"}]},
        {"role": "assistant", "parts": [TOOL_CALL]},
        {"role": "tool", "parts": [OUTPUT]},
    ],
    "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "Hello"}]}],
    "gen_ai.tool.definitions": [{"name": "ls", "description": "List", "parameters": {"type": "object"}}],
}
INDEXED = {
    "llm.request.type": "chat",
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": "Hi",
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.content": "Hello",
}
RUN = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ls", "gen_ai.tool.call.id": "c1"}
#: Spans as name, attributes, attributes that are JSON text, and attributes of the resource.
SPANS: list[JSON] = [
    {"name": "chat", "plain": MODEL | USER, "structured": STRUCTURED, "resource": RESOURCE},
    {"name": "chat", "plain": MODEL | USER | INDEXED, "structured": {}, "resource": RESOURCE},
    {"name": "chat", "plain": MODEL | USER, "structured": {}, "resource": RESOURCE},
    {"name": "tool", "plain": RUN | USER, "structured": {}, "resource": RESOURCE},
]
#: Log records of Claude Code and Codex.
RECORDS = [
    call("req_1", user_email="a@example.org", **{"user.email": "ann@example.org", "terminal.type": "x"}),
    call("req_1", query_source="agent:reviewer", agent_name="reviewer"),
    event("user_prompt", prompt="Fix it", prompt_length=6),
    event("tool_result", tool_name="Bash", tool_use_id="t1", duration_ms=5, success="true", error="no"),
    event("compaction", trigger="auto", pre_tokens=5),
    codex_call(**{"user.account_id": "a", "user.email": "ann@example.org", "app.version": "1"}),
]


def traces(secrets: Secrets) -> Iterator[JSON]:
    for number, shape in enumerate(SPANS):
        for found in with_secrets(shape, f"span {number}", secrets):
            content = {name: orjson.dumps(value).decode() for name, value in found["structured"].items()}
            attributes = USAGE | {"gen_ai.operation.name": "chat"} | found["plain"] | content
            index = len(secrets.places)
            span = {
                "traceId": f"{index:032x}",
                "spanId": f"{index:016x}",
                "name": found["name"],
                "startTimeUnixNano": "1795352015000000000",
                "endTimeUnixNano": "1795352016000000000",
                "attributes": pairs(attributes),
            }
            resource = {"attributes": pairs(found["resource"])}
            yield {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]}


def logs(secrets: Secrets) -> Iterator[JSON]:
    for number, record in enumerate(RECORDS):
        body = export(record, resource=RESOURCE)
        for found in with_secrets(body, f"record {number}", secrets):
            log = found["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
            if log.get("timeUnixNano", "0").isdigit():
                yield found


@pytest.mark.slow
@pytest.mark.parametrize(("signal", "bodies"), [("traces", traces), ("logs", logs)])
def test_a_secret_in_any_attribute_is_kept_nowhere(
    api_key: str, signal: str, bodies: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    secrets = Secrets()
    answers = [post(api_key, body, signal=signal) for body in bodies(secrets)]
    assert len(answers) > 50
    everything = everything_stored()
    assert len(set(re.findall(rb"\[redacted:github-token:\w+", everything))) > 3
    assert secrets.found_in(everything) == set()
    assert secrets.found_in(b"".join(answer.content for answer in answers)) == set()
    assert secrets.found_in(caplog.text.encode()) == set()


def test_ids_and_names_are_redacted_wherever_they_are_stored(api_key: str) -> None:
    secrets = Secrets()
    places = ("id", "tool", "model", "line", "version", "member")
    found = {place: f"agent:{secrets.new(place)}" for place in places}
    origin = {"user.email": found["member"], "query_source": found["line"], "model": found["model"]}
    body = export(
        call(found["id"], **origin),
        event("tool_result", 1, tool_name=found["tool"], tool_use_id=found["id"], duration_ms=5),
        resource={"service.version": found["version"]},
    )
    assert post(api_key, body).status_code == 200
    assert Turn.objects.exists()
    assert b"[redacted:github-token:" in everything_stored()
    assert secrets.found_in(everything_stored()) == set()


@pytest.mark.parametrize("longest", [50, 60, 80, 100, 150, 200, 254])
def test_no_part_of_a_secret_is_kept_where_a_name_is_shortened(api_key: str, longest: int) -> None:
    secrets = Secrets()
    before = "x" * (longest - 12) + " "
    names = ["id", "session", "tool", "model", "line", "version", "label", "value"]
    found = {name: before + secrets.new(name) for name in names}
    session, origin = (
        {"session.id": found["session"]},
        {"query_source": found["line"], "model": found["model"]},
    )
    body = export(
        call(found["id"], **origin, **session),
        event("tool_result", 1, tool_name=found["tool"], tool_use_id=found["id"], duration_ms=5, **session),
        resource={"service.version": found["version"], found["label"]: "a", "team.id": found["value"]},
    )
    assert post(api_key, body).status_code == 200
    assert Turn.objects.exists()
    assert b"ghp_" not in everything_stored()
