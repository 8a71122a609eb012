"""Large contents that are missing from object storage or damaged: everything else remains usable."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from sessions.models import AgentSession, Blob
from tests.api.client import Api, code
from tests.api.talk import answer, call, output, prompt, push, request, result
from tests.storage.test_blobs import files, folder

__all__ = ["folder"]


@pytest.fixture
def api(admin_api: Api) -> Api:
    return admin_api


def openai_call(id: str, **arguments: Any) -> dict[str, Any]:
    return {
        "id": id,
        "type": "function",
        "function": {"name": "write", "arguments": json.dumps(arguments)},
    }


def responses_call(id: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id, "name": "write", "arguments": json.dumps(arguments)}


#: Histories with large messages of each role.
HISTORIES: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        request(output(0, 900)),
        call("toolu_1", path="a.py", content=output(1, 900)),
        result("toolu_1", "Written."),
        call("toolu_2", path="a.py"),
        result("toolu_2", output(2, 900)),
        answer("Done."),
        request("Go on."),
    ],
    "openai": [
        {"role": "system", "content": output(0, 900)},
        request("Please write the files."),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [openai_call("c1", text=output(1, 900)), openai_call("c2")],
        },
        {"role": "tool", "tool_call_id": "c1", "content": output(2, 900)},
        {"role": "tool", "tool_call_id": "c2", "content": "Written."},
        {"role": "assistant", "content": output(4, 900)},
        request("Go on."),
    ],
    "openai-responses": [
        request("Please write the files."),
        responses_call("c1", text=output(1, 900)),
        responses_call("c2"),
        {"type": "function_call_output", "call_id": "c1", "output": output(2, 900)},
        {"type": "function_call_output", "call_id": "c2", "output": "Written."},
        request("Go on."),
    ],
}


#: The byte of a compressed content that describes its header, with other values.
HEADERS = (b"\x00", b"\xe1")


@pytest.mark.slow
@pytest.mark.parametrize("format", HISTORIES)
def test_the_prompt_stays_valid_and_names_the_problem(
    api: Api, folder: Path, format: str, subtests: pytest.Subtests
) -> None:
    api.post("sessions/", {"id": "s1", "format": format, "budget": {"input_tokens": 500_000}})
    push(api, HISTORIES[format])
    complete = prompt(api)
    assert files(folder)
    for file in files(folder):
        content = file.read_bytes()
        with subtests.test("missing"):
            file.unlink()
            for other in HISTORIES:
                assert "missing from object storage" in json.dumps(prompt(api, f"?format={other}"))
            assert "missing from object storage" in json.dumps(prompt(api, "?at_turn=0"))
        with subtests.test("damaged"):
            # Its end, and in its header the number of the dictionary and the size.
            for damaged in (content[:-9] + b"unrelated", *(content[:4] + b + content[5:] for b in HEADERS)):
                file.write_bytes(damaged)
                assert "damaged in object storage" in json.dumps(prompt(api))
        file.write_bytes(content)
        assert prompt(api) == complete


def lose_an_output(api: Api, folder: Path) -> str:
    """Push an output that is cleared, and delete its object. Return the output's handle."""
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 25_000}, "policy": "masking"})
    push(api, [request()])
    for number in range(4):
        push(api, [call(f"toolu_{number}"), result(f"toolu_{number}", output(number, 900))])
    edits = api.get("sessions/s1/compactions/1/").json()["edits"]
    edit = next(edit for edit in edits if edit["handle"])
    [blob] = Blob.objects.filter(messages__position=edit["positions"]["first"])
    next(file for file in files(folder) if file.name == bytes(blob.sha256).hex()).unlink()
    return str(edit["handle"])


@pytest.mark.slow
def test_only_requests_for_the_lost_content_fail(
    api: Api, folder: Path, client: Client, member: User, capsys: pytest.CaptureFixture[str]
) -> None:
    handle = lose_an_output(api, folder)
    response = api.get(f"sessions/s1/blobs/{handle}/")
    assert (response.status_code, code(response)) == (404, "content_lost")
    session = AgentSession.objects.get()
    client.force_login(member)
    base = f"/p/{session.project.slug}/sessions/{session.pk}/"
    for page in ("", "prompt/", "compactions/1/", "turns/4/seen/", "turns/4/seen/json/", "export.md"):
        assert client.get(base + page).status_code == 200
    assert b"missing from object storage" in client.get(f"{base}messages/2/raw/").content
    for number in range(4, 9):
        push(api, [call(f"toolu_{number}"), result(f"toolu_{number}", output(number, 900))])
        prompt(api)
    assert api.post("sessions/s1/compact/").status_code == 200
    prompt(api)
    with pytest.raises(CommandError, match="1 of 9 objects are missing or damaged"):
        call_command("check_contents")
    assert "project alpha, session s1, message 2" in capsys.readouterr().out


def test_an_etag_does_not_hide_a_restored_content(api: Api, folder: Path) -> None:
    api.post("sessions/", {"id": "s1"})
    push(api, [request(output(0, 900))])
    [file] = files(folder)
    content = file.read_bytes()
    file.unlink()
    assert "ETag" not in api.get("sessions/s1/prompt/").headers
    file.write_bytes(content)
    assert prompt(api)["messages"] == [request(output(0, 900))]
    call_command("check_contents")


def test_a_folder_that_is_not_mounted_is_unavailable(api: Api, folder: Path) -> None:
    api.post("sessions/", {"id": "s1"})
    push(api, [request(output(0, 900))])
    shutil.rmtree(next(folder.iterdir()))
    assert api.get("sessions/s1/prompt/").status_code == 503
    with pytest.raises(CommandError, match="object storage is unavailable"):
        call_command("check_contents")
