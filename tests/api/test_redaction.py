"""Pushed secrets are not stored, returned or logged."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
import zstandard
from django.db import connection

from sessions.models import PromptSnapshot
from sessions.selectors.compactions.recaps import recap_lines, recap_value, recaps
from sessions.selectors.prompts.outlines import snapshot_read
from sessions.store import bodies
from sessions.store.bodies import json_bytes
from sessions.store.prompt_snapshots import Generated
from tests.api.client import Api
from tests.api.talk import PROMPT, TURNS, answer, call, push, request, result

#: Has the format of a real token, but is not one.
SECRET = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"


def everything_stored() -> bytes:
    """Return all columns of all tables, decompressed."""
    found = [json_bytes(asdict(recap_lines(row))) for row in recaps()]
    found += [json_bytes(recap_value(row).to_json()) for row in recaps()]
    for id in PromptSnapshot.objects.values_list("pk", flat=True):
        outline = snapshot_read(id)
        found += [each.data for each in outline.entries if isinstance(each, Generated)] if outline else []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT * FROM "{table}"')
            for row in cursor:
                for value in row:
                    held = bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()
                    found.append(_decompressed(held))
    return b"\n".join(found)


def _decompressed(held: bytes) -> bytes:
    """Return a body, or a block of the search index; the others are checked as recaps and snapshots."""
    try:
        return bodies.unpack(held)
    except bodies.UnknownDictionary:
        pass
    try:
        return zstandard.decompress(held)
    except zstandard.ZstdError:
        return held


@pytest.mark.parametrize(
    "push_fields",
    [
        {"messages": [request(f"My token is {SECRET}, keep it.")]},
        {"messages": [request(), call("t", token=SECRET), result("t", f"export GITHUB_TOKEN={SECRET}\n")]},
        {"messages": [request("Hello.")], "system": f"Use the token {SECRET}."},
        {"messages": [request("Hello.")], "tools": [{"name": "x", "description": f"token {SECRET}"}]},
        {"messages": [request(f"token {SECRET} " + "lorem ipsum " * 3_000)]},
    ],
    ids=["text", "tool call and output", "system", "tools", "a blob"],
)
def test_the_secret_is_stored_nowhere(
    api: Api, session: dict[str, Any], push_fields: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    response = api.post(TURNS, push_fields, idempotency_key="k1")
    assert response.status_code == 201
    answers = [response, api.post(TURNS, push_fields, idempotency_key="k1")]
    answers.append(api.post("sessions/s1/compact/"))
    answers += [api.get(a) for a in (TURNS, PROMPT, f"{PROMPT}?format=openai", "sessions/s1/search/?q=token")]
    assert all(response.status_code in {200, 201} for response in answers)
    for response in answers:
        assert SECRET.encode() not in response.content
    assert SECRET.encode() not in everything_stored()
    assert SECRET not in caplog.text


def test_the_response_names_the_kind_of_secret(api: Api, session: dict[str, Any]) -> None:
    pushed = push(api, [request(f"My token is {SECRET}."), answer()])
    assert [finding["count"] for finding in pushed["redacted"]] == [1]
    [message] = api.get(PROMPT).json()["messages"][:1]
    assert message["content"].startswith("My token is ")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "fields",
    [
        {"system": f"Use {SECRET}"},
        {"tools": [{"name": "x", "description": SECRET}]},
        {"title": f"Use {SECRET}"},
        {"agent": SECRET},
        {"tags": [SECRET]},
        {"metadata": {"token": SECRET}},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_secret_in_a_new_session_is_redacted(api: Api, fields: dict[str, Any]) -> None:
    assert api.post("sessions/", {"id": "s2", **fields}).status_code == 201
    assert SECRET.encode() not in api.get("sessions/s2/").content
    assert SECRET.encode() not in everything_stored()


def test_a_secret_in_compaction_instructions_is_redacted(api: Api, session: dict[str, Any]) -> None:
    push(api, [request()])
    assert api.post("sessions/s1/compact/", {"instructions": f"Keep {SECRET}"}).status_code == 200
    assert SECRET.encode() not in everything_stored()


def test_a_secret_in_a_rejected_push_is_not_logged(
    api: Api, session: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    for body in ({"messages": [request(SECRET)], "model": 5}, {"messages": [SECRET]}, {SECRET: 1}):
        response = api.post(TURNS, body)
        assert response.status_code == 400
    assert SECRET not in caplog.text
