"""A new dialect is one file (`lines_dialect.py`) and one line (an entry in `DIALECTS`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from compaction import dialects
from compaction.validation import validate
from sessions.models import AgentSession
from tests.api.client import Api, code
from tests.api.talk import openai_turn, output, whole_turn
from tests.extending.lines_dialect import Lines
from tests.plugins.reused import reused

ROOT = Path(__file__).resolve().parents[2]

#: Prints the OpenAPI description as a server with the new dialect serves it.
_SCHEMA = """
from compaction import dialects
from tests.extending.lines_dialect import Lines
dialects.DIALECTS[Lines.name] = Lines()
import django, json
django.setup()
from drf_spectacular.generators import SchemaGenerator
print(json.dumps(SchemaGenerator().get_schema(request=None, public=True), default=str))
"""


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch)


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dialects.DIALECTS, Lines.name, Lines())


def turn(number: int) -> list[dict[str, Any]]:
    return [
        {"from": "person", "line": f"Please read file {number}."},
        {"from": "call", "id": f"c{number}", "line": '{"command": "cat"}', "extra": [1.50]},
        {"from": "result", "id": f"c{number}", "line": output(number, 60)},
        {"from": "model", "line": f"File {number} defines handlers."},
    ]


@reused
def compacted(api: Api) -> Api:
    """A caller whose session `s1` was compacted."""
    body = {"id": "s1", "format": "lines", "budget": {"input_tokens": 6_000}, "policy": "masking"}
    with pytest.MonkeyPatch.context() as monkeypatch:
        register(monkeypatch)
        assert api.post("sessions/", body).status_code == 201
        for number in range(12):
            response = api.post("sessions/s1/turns/", {"messages": turn(number)})
            assert response.status_code == 201, response.content
    return api


def test_its_session_is_compacted_and_served_in_it(compacted: Api) -> None:
    assert compacted.get("sessions/s1/").json()["format"] == "lines"
    prompt = compacted.get("sessions/s1/prompt/?manifest=1").json()
    assert prompt["format"] == "lines"
    assert prompt["fits"]
    assert prompt["messages"][-4:] == turn(11)
    assert validate(prompt["messages"], "lines") == ()
    assert "h_" in next(item["line"] for item in prompt["messages"] if item["from"] == "result")
    assert {entry["rule"] for entry in prompt["manifest"]} > {"verbatim"}
    records = compacted.get("sessions/s1/compactions/").json()["data"]
    assert records[-1]["state"] == "done"
    number = records[-1]["number"]
    assert compacted.get(f"sessions/s1/compactions/{number}/").json()["edits"]


@pytest.mark.parametrize("target", ["anthropic", "openai", "openai-responses"])
def test_its_session_is_served_in_another_dialect(compacted: Api, target: str) -> None:
    prompt = compacted.get(f"sessions/s1/prompt/?format={target}").json()
    assert prompt["format"] == target
    assert validate(prompt["messages"], target) == ()


def test_a_session_of_another_dialect_is_served_in_it(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "format": "openai"})
    api.post("sessions/s1/turns/", {"messages": [{"role": "user", "content": "Hello"}]})
    assert api.get("sessions/s1/prompt/?format=lines").json()["messages"] == [
        {"from": "person", "line": "Hello"}
    ]


def test_messages_are_validated_by_its_rules(api: Api) -> None:
    body = {"format": "lines", "messages": [{"from": "result", "id": "c1", "line": "x"}]}
    found = api.post("prompts/validate/", body).json()
    assert [violation["rule"] for violation in found["violations"]] == ["L2"]


def test_the_agent_tools_are_defined_in_it(api: Api) -> None:
    response = api.get("/api/v1/tools/?format=lines").json()
    assert response["format"] == "lines"
    assert "expand_clip" in [tool["tool"] for tool in response["tools"]]


@pytest.mark.slow
def test_pages_show_its_label(compacted: Api, member_client: Client) -> None:
    session = AgentSession.objects.select_related("project").get(external_id="s1")
    page = member_client.get(reverse("session_prompt", args=[session.project.slug, session.pk]))
    assert page.status_code == 200
    assert "in Lines of text format" in page.content.decode()


@pytest.mark.slow
def test_the_working_memory_is_served_in_it(compacted: Api) -> None:
    response = compacted.patch("sessions/s1/memory/", {"task": "Read all files"}, if_match='"0"')
    assert response.status_code == 200, response.content
    messages = compacted.get("sessions/s1/prompt/?memory=latest").json()["messages"]
    assert any(item["from"] == "person" and "Read all files" in item["line"] for item in messages)


def test_a_message_of_another_format_is_rejected(compacted: Api) -> None:
    body = {"messages": [{"from": "narrator", "line": "x"}]}
    response = compacted.post("sessions/s1/turns/", body)
    assert (response.status_code, code(response)) == (400, "invalid_message")
    assert "`from` must be one of" in response.json()["error"]["message"]


def test_it_is_detected(api: Api) -> None:
    api.post("sessions/", {"id": "s1"})
    assert api.post("sessions/s1/turns/", {"messages": turn(1)}).status_code == 201
    assert api.get("sessions/s1/").json()["format"] == "lines"
    assert api.get("sessions/s1/prompt/").json()["messages"] == turn(1)


@pytest.mark.parametrize("target", ["anthropic", "lines", "openai"])
def test_its_session_may_contain_messages_of_another(compacted: Api, target: str) -> None:
    for messages in (openai_turn(1), whole_turn(2), turn(20)):
        response = compacted.post("sessions/s1/turns/", {"messages": messages})
        assert response.status_code == 201, response.content
    for query in ("", "&at_turn=13"):
        prompt = compacted.get(f"sessions/s1/prompt/?format={target}{query}").json()
        assert validate(prompt["messages"], target) == ()
        assert "File 1 defines handlers." in str(prompt["messages"])


def test_without_the_line_it_is_unknown(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(dialects.DIALECTS, Lines.name)
    response = api.post("sessions/", {"format": "lines"})
    assert (response.status_code, code(response)) == (400, "invalid_field")


@pytest.mark.processes
def test_the_openapi_description_lists_it() -> None:
    environment = {"DJANGO_SETTINGS_MODULE": "contextapp.settings", "PATH": ""}
    made = subprocess.run(
        [sys.executable, "-c", _SCHEMA], cwd=ROOT, env=environment, capture_output=True, check=True
    )
    schema = json.loads(made.stdout)
    assert "lines" in schema["components"]["schemas"]["FormatEnum"]["enum"]
    for path in ("/api/v1/tools/", "/api/v1/sessions/{session_id}/prompt/"):
        parameters = {each["name"]: each for each in schema["paths"][path]["get"]["parameters"]}
        assert parameters["format"]["schema"]["enum"] == sorted(dialects.DIALECTS)
