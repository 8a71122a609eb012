"""Import logs over the API."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client

from tests.api.client import Api, code

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "List the files."},
    {"role": "assistant", "content": "There are none."},
]


def log(*messages: Any) -> bytes:
    return orjson.dumps({"messages": [*MESSAGES, *messages]})


def sub_agent(id: str, parent: str | None = None) -> bytes:
    """Return a session of OpenCode."""
    info = {"id": "msg_1", "role": "user", "sessionID": id}
    part = {"id": "prt_1", "messageID": "msg_1", "type": "text", "text": "Fix the parser"}
    session = {"id": id, "projectID": "p", "parentID": parent}
    return orjson.dumps({"info": session, "messages": [{"info": info, "parts": [part]}]})


@pytest.fixture
def upload(api_key: str) -> Any:
    """Return a function that sends a log as the body: `upload(data, "name=run.json")`."""

    def send(data: bytes, query: str = "name=run.json", key: str = api_key) -> HttpResponse:
        return Client().generic(
            "POST",
            f"/api/v1/imports/?{query}",
            data=data,
            content_type="application/octet-stream",
            headers={"authorization": f"Bearer {key}"},
        )

    return send


class TestImport:
    def test_an_imported_log_is_a_normal_session(self, upload: Any, api: Api) -> None:
        shown = upload(log()).json()
        [session] = shown["sessions"]
        assert (shown["format"], shown["name"], shown["damage_count"]) == ("openai-chat", "run.json", 0)
        assert (session["state"], session["turns"]) == ("new", 1)
        assert api.get(f"sessions/{session['id']}/").json()["messages"] == session["messages"]
        assert api.get(f"sessions/{session['id']}/prompt/").json()["messages"][-1] == MESSAGES[-1]

    def test_a_form_upload_works_too(self, api_key: str) -> None:
        file = SimpleUploadedFile("run.json", log())
        headers = {"authorization": f"Bearer {api_key}"}
        response = Client().post("/api/v1/imports/", {"file": file}, headers=headers)
        assert response.json()["sessions"][0]["state"] == "new"

    @pytest.mark.parametrize("depth", [101, 600])
    def test_what_is_nested_too_deeply_in_a_message_is_stored_as_its_json_text(
        self, upload: Any, api: Api, depth: int
    ) -> None:
        call = {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "parse",
            "input": {"path": "a.py", "tree": "DEEP"},
        }
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
        messages = [
            MESSAGES[1],
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
        data = orjson.dumps({"messages": messages})
        data = data.replace(b'"DEEP"', b'[{"a":' * (depth // 2) + b'"leaf"' + b"}]" * (depth // 2))
        shown = upload(data).json()
        assert (shown["sessions"][0]["messages"], shown["damages"]) == (3, [])
        prompt = api.get(f"sessions/{shown['sessions'][0]['id']}/prompt/").json()
        stored = prompt["messages"][1]["content"][0]["input"]
        assert stored["path"] == "a.py"
        value, levels = stored["tree"], 0
        while value != "leaf":
            value = orjson.loads(value) if isinstance(value, str) else value
            value = value[0] if isinstance(value, list) else value["a"]
            levels += 1
        assert levels == depth // 2 * 2

    def test_a_session_nested_extremely_deeply_is_imported_or_reported(self, upload: Any) -> None:
        data = log({"role": "user", "content": "DEEP"}).replace(b'"DEEP"', b"[" * 1_000 + b"]" * 1_000)
        shown = upload(data).json()
        assert len(shown["sessions"]) + len(shown["damages"]) == 1

    def test_a_sub_agent_is_linked_to_a_parent_that_is_uploaded_after_it(self, upload: Any, api: Api) -> None:
        child, again = (upload(sub_agent("ses_a", parent="ses_b")).json()["sessions"][0] for _ in range(2))
        shown = api.get(f"sessions/{child['id']}/").json()
        assert (shown["parent"], shown["metadata"]) == (None, {"parent_external_id": "ses_b"})
        [parent] = upload(sub_agent("ses_b")).json()["sessions"]
        shown = api.get(f"sessions/{child['id']}/").json()
        assert (shown["parent"], shown["metadata"]) == (parent["id"], {})
        assert (child["state"], again["state"]) == ("new", "unchanged")

    @pytest.mark.slow
    def test_sessions_that_name_each_other_as_parents_are_not_linked_in_a_circle(
        self, upload: Any, api: Api
    ) -> None:
        for name, parent in (("ses_a", "ses_b"), ("ses_b", "ses_a"), ("ses_c", "ses_c")):
            upload(sub_agent(name, parent=parent))
        parents = {each["external_id"]: each["parent"] for each in api.get("sessions/").json()["data"]}
        assert sum(parent is None for parent in parents.values()) == 2

    def test_importing_again_adds_nothing(self, upload: Any) -> None:
        first, second = (upload(log()).json()["sessions"][0] for _ in range(2))
        assert (second["state"], second["turns"], second["messages"]) == ("unchanged", 0, 0)
        assert first["id"] == second["id"]

    def test_importing_a_longer_log_adds_the_rest(self, upload: Any) -> None:
        upload(log())
        more = [{"role": "user", "content": "And now?"}, {"role": "assistant", "content": "Still none."}]
        [session] = upload(log(*more)).json()["sessions"]
        assert (session["state"], session["turns"], session["messages"]) == ("grown", 1, 2)

    def test_an_unnamed_log_is_named_by_its_content(self, upload: Any) -> None:
        ids = {upload(log(), "").json()["sessions"][0]["external_id"] for _ in range(2)}
        assert len(ids) == 1
        assert "log-" in ids.pop()

    def test_a_file_of_another_format_is_reported_as_damaged(self, upload: Any) -> None:
        response = upload(b"no JSON", "name=run.json&format=claude-code")
        assert (response.status_code, response.json()["sessions"]) == (200, [])
        assert response.json()["damage_count"] == 1

    def test_secrets_are_redacted_and_counted(self, upload: Any) -> None:
        secret = {"role": "user", "content": "Use ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"}
        [session] = upload(log(secret, MESSAGES[2])).json()["sessions"]
        assert [found["count"] for found in session["redacted"]] == [1]

    def test_damaged_lines_are_reported_and_the_rest_imported(self, upload: Any) -> None:
        other = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Me."}]
        lines = [log(), b'{"messages": [{"role"', orjson.dumps({"messages": other})]
        shown = upload(b"\n".join(lines), "name=runs.jsonl").json()
        assert shown["damage_count"] == 1
        assert shown["damages"][0]["line"] == 2
        assert [session["state"] for session in shown["sessions"]] == ["new", "new"]

    def test_it_belongs_to_the_project_of_the_key(self, upload: Any, stranger_api_key: str, api: Api) -> None:
        upload(log(), key=stranger_api_key)
        assert api.get("sessions/").json()["data"] == []


class TestRefusals:
    @pytest.mark.parametrize("data", [b"hello", b"[]", b'{"a": 1}', b"\xff\xfe\x00"])
    def test_an_unknown_format_lists_the_supported_ones(self, upload: Any, data: bytes) -> None:
        response = upload(data)
        assert (response.status_code, code(response)) == (422, "unknown_format")
        assert "claude-code" in response.json()["error"]["message"]

    @pytest.mark.parametrize(
        ("data", "advice"),
        [
            (b"\x1f\x8b\x08\x00", "Decompress it"),
            (b"PK\x03\x04\x00", "import the files in it"),
            (b"PAR1\x15", "Convert it to JSON Lines"),
            (b"SQLite format 3\x00", "manage.py import_sessions"),
        ],
    )
    def test_a_file_that_contains_logs_is_rejected_with_advice(
        self, upload: Any, data: bytes, advice: str
    ) -> None:
        response = upload(data)
        assert (response.status_code, code(response)) == (422, "unknown_format")
        assert advice in response.json()["error"]["message"]

    def test_a_pushed_session_is_not_overwritten(self, upload: Any, api: Api) -> None:
        api.post("sessions/", {"id": "run", "format": "openai"})
        api.post("sessions/run/turns/", {"messages": [{"role": "user", "content": "mine"}]})
        response = upload(log(), "name=run.json")
        assert (response.status_code, code(response)) == (409, "import_conflict")
        assert api.get("sessions/run/").json()["turns"] == 1

    def test_an_empty_body_or_form_is_rejected(self, upload: Any, api_key: str) -> None:
        assert code(upload(b"")) == "missing_field"
        headers = {"authorization": f"Bearer {api_key}"}
        assert code(Client().post("/api/v1/imports/", {"other": "x"}, headers=headers)) == "missing_field"

    def test_a_broken_form_is_rejected(self, api_key: str) -> None:
        response = Client().generic(
            "POST",
            "/api/v1/imports/",
            data=b"nothing of a form",
            content_type="multipart/form-data",
            headers={"authorization": f"Bearer {api_key}"},
        )
        assert response.status_code == 400

    def test_a_file_over_the_limit_is_rejected_with_the_limit(self, upload: Any, settings: Any) -> None:
        settings.CONTEXTAPP_MAX_IMPORT_BYTES = 100
        response = upload(log())
        assert (response.status_code, code(response)) == (413, "body_too_large")
        assert "100 bytes" in response.json()["error"]["message"]

    def test_invalid_parameters_are_named(self, upload: Any) -> None:
        assert code(upload(log(), "format=morse")) == "invalid_field"
        assert code(upload(log(), "name=a%00b")) == "invalid_field"

    def test_a_read_only_key_cannot_import(self, reader_api: Api) -> None:
        assert code(reader_api.post("imports/")) == "missing_scope"
