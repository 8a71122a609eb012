"""The engine of the provider over the API: parameters in the prompt, reports in pushes."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from sessions.models import AgentSession
from tests.api.client import Api, code
from tests.gateway.anthropic_talk import whole
from tests.gateway.double import Provider

CLEARED = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 50_000}
USAGE = {"input_tokens": 60_000, "output_tokens": 20}


@pytest.fixture
def session(api: Api) -> Api:
    body = {"id": "s1", "model": "claude-opus-4-6", "budget": {"input_tokens": 200_000}}
    policy = {"preset": "balanced", "engine": "provider"}
    assert api.post("sessions/", {**body, "format": "anthropic", "policy": policy}).status_code == 201
    push(api, [{"role": "user", "content": "Read the files."}])
    return api


def push(api: Api, messages: list[Any], **fields: Any) -> dict[str, Any]:
    response = api.post("sessions/s1/turns/", {"messages": messages, **fields})
    assert response.status_code == 201, response.content
    body: dict[str, Any] = response.json()
    return body


def said(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": [*blocks, {"type": "text", "text": "Done."}]}


def test_the_prompt_has_the_parameters_of_the_provider(session: Api) -> None:
    prompt = session.get("sessions/s1/prompt/").json()
    kinds = [edit["type"] for edit in prompt["context_management"]["edits"]]
    assert kinds == ["clear_tool_uses_20250919", "compact_20260112"]
    assert prompt["betas"] == ["context-management-2025-06-27", "compact-2026-01-12"]
    assert "context_management" not in session.get("sessions/s1/prompt/?format=openai").json()
    before = session.get("sessions/s1/prompt/")["ETag"]
    assert session.patch("sessions/s1/", {"policy": "balanced"}).status_code == 200
    after = session.get("sessions/s1/prompt/")
    assert "context_management" not in after.json()
    assert after["ETag"] != before


@pytest.mark.processes
def test_anthropics_sdk_sends_them(session: Api) -> None:
    import anthropic  # takes a second, even in runs that do not include this test

    prompt = session.get("sessions/s1/prompt/").json()
    with Provider() as provider:
        provider.script = [whole({"type": "text", "text": "Done."})]
        client = anthropic.Anthropic(api_key="sk", base_url=provider.url)
        client.beta.messages.create(
            model="claude-opus-4-6",
            max_tokens=9,
            messages=prompt["messages"],
            context_management=prompt["context_management"],
            betas=prompt["betas"],
        )
        [received] = provider.received
        assert received.header("anthropic-beta") == "context-management-2025-06-27,compact-2026-01-12"
        assert b"clear_at_least" in received.body


def test_cleared_content_becomes_a_compaction_once(session: Api) -> None:
    for cleared, fired in ((8, 1), (8, 0), (9, 1)):
        edits = [{**CLEARED, "cleared_tool_uses": cleared}]
        pushed = push(session, [said()], usage=USAGE, context_management={"applied_edits": edits})
        assert [each["trigger"] for each in pushed["fired"]] == ["provider"] * fired
    records = session.get("sessions/s1/compactions/").json()["data"]
    assert [record["engine"] for record in records] == ["provider", "provider"]
    assert records[-1]["record"]["applied_edits"][0]["cleared_tool_uses"] in (8, 9)


def test_the_calibration_counts_what_the_provider_cleared(session: Api) -> None:
    text = "word " * 60_000
    push(session, [{"role": "user", "content": text}])
    push(
        session,
        [said()],
        usage=USAGE,
        context_management={"applied_edits": [CLEARED | {"cleared_input_tokens": 10}]},
    )
    low = session.get("sessions/s1/").json()["calibration"]["factor"]
    push(
        session,
        [said()],
        usage={**USAGE, "input_tokens": 10_000},
        context_management={"applied_edits": [CLEARED]},
    )
    assert session.get("sessions/s1/").json()["calibration"]["factor"] == pytest.approx(low, rel=0.05)


def test_a_summary_replaces_what_precedes_it(session: Api) -> None:
    push(session, [said(), {"role": "user", "content": "And now?"}])
    summary = said({"type": "compaction", "content": "We read the files."})
    iterations = [{"type": "compaction", "input_tokens": 9, "output_tokens": 3}, {"type": "message", **USAGE}]
    push(session, [summary], usage={**USAGE, "iterations": iterations})
    follow_up = {"role": "user", "content": "Go on."}
    push(session, [follow_up])
    assert session.get("sessions/s1/prompt/").json()["messages"] == [summary, follow_up]
    [record] = session.get("sessions/s1/compactions/").json()["data"]
    assert record["record"]["iterations"] == iterations[:1]
    assert session.post(f"sessions/s1/compactions/{record['number']}/revert/", {}).status_code == 200
    assert len(session.get("sessions/s1/prompt/").json()["messages"]) == 5


def test_a_malformed_report_is_rejected(session: Api) -> None:
    body = {"messages": [said()], "context_management": []}
    response = session.post("sessions/s1/turns/", body)
    assert (response.status_code, code(response)) == (400, "invalid_field")


def test_an_unknown_engine_is_rejected(api: Api) -> None:
    response = api.post("sessions/", {"policy": {"engine": "theirs"}})
    assert response.status_code == 400
    assert "engine" in response.json()["error"]["message"]


@pytest.mark.slow
def test_pages_show_it_like_our_own_compactions(api: Api, viewer_client: Client) -> None:
    """A prompt from which the provider cleared outputs, then one that begins with its opaque summary."""
    items: list[dict[str, Any]] = [{"role": "user", "content": "Read all the files."}]
    for number in range(3):
        call = {"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": "{}"}
        text = "\n".join(f"{line} handler_{number}_{line}" for line in range(80))
        items += [call, {"type": "function_call_output", "call_id": f"c{number}", "output": text}]
    edits = [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 2, "cleared_input_tokens": 900}]
    answer = {"type": "message", "role": "assistant", "content": "Done."}
    summary = {"type": "compaction", "id": "cmp_1", "encrypted_content": "opaque"}
    api.post("sessions/", {"id": "s1"})
    push(api, items)
    push(api, [answer], context_management={"applied_edits": edits})
    push(api, [summary, answer])
    assert api.get("sessions/s1/prompt/").json()["messages"] == [summary, answer]
    session = AgentSession.objects.select_related("project").get(external_id="s1")
    where = [session.project.slug, session.pk]
    for row in session.compactions.order_by("number"):
        page = viewer_client.get(reverse("session_compaction", args=[*where, row.number]))
        assert 'title="The provider compacted the prompt."' in page.text
        assert sum(change.after for change in page.context["components"]) == row.tokens_after
        assert row.tokens_after < row.tokens_before
    assert "Read all the files." in page.text
    for name in ("session", "session_compactions", "session_prompt"):
        page = viewer_client.get(reverse(name, args=where))
        assert page.status_code == 200
    assert "in OpenAI Responses format" in page.text
