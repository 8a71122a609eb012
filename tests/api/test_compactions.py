"""Compact on demand, list compactions, revert them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import AuditEvent
from sessions.models import AgentSession, Compaction, Edit, PromptSnapshot, Recap
from sessions.services.compactions.background import compactions_sweep
from sessions.services.dispatch import COMPACTION_RUN
from tests.api.client import Api, code
from tests.api.talk import PROMPT, openai_turn, prompt, push, request, whole_turn
from tests.plugins.reused import reused

pytestmark = pytest.mark.usefixtures("session")

COMPACT = "sessions/s1/compact/"

#: Compacts only on request, and leaves little unchanged.
BY_HAND = {"soft": 0, "hard": 0, "tail_share": 0.01}


@reused
def session(api: Api) -> dict[str, Any]:
    made: dict[str, Any] = api.post(
        "sessions/", {"id": "s1", "format": "anthropic", "policy": BY_HAND}
    ).json()
    return made


def fill(api: Api, turns: int, session: str = "s1", start: int = 0) -> None:
    for number in range(start, start + turns):
        push(api, whole_turn(number), session=session)


def compact(api: Api, session: str = "s1", **fields: Any) -> dict[str, Any]:
    response = api.post(f"sessions/{session}/compact/", fields)
    assert response.status_code == 200, response.content
    done: dict[str, Any] = response.json()
    return done


class TestCompacting:
    def test_the_prompt_shrinks_as_recorded(self, api: Api) -> None:
        fill(api, 6)
        before = prompt(api)
        done = compact(api)
        after = prompt(api)
        assert (done["number"], done["state"], done["trigger"], done["turn"]) == (1, "done", "user", 5)
        assert (done["tokens_before"], done["tokens_after"]) == (before["tokens"], after["tokens"])
        assert after["tokens"] < before["tokens"] == after["raw_tokens"]
        assert after["compactions"] == 1
        assert done["edits"]
        assert done["record"]["head_verbatim"] is True
        assert done["record"]["tail_verbatim"] is True

    def test_head_and_tail_are_unchanged(self, api: Api) -> None:
        fill(api, 6)
        before = prompt(api)["messages"]
        compact(api)
        after = prompt(api)["messages"]
        assert after[0] == before[0]
        assert after[-4:] == before[-4:]

    def test_the_transcript_is_unchanged(self, api: Api) -> None:
        fill(api, 6)
        before = api.get("sessions/s1/turns/").content
        compact(api)
        assert api.get("sessions/s1/turns/").content == before

    def test_a_preview_writes_nothing(self, api: Api) -> None:
        fill(api, 6)
        before = api.get(PROMPT)
        row = AgentSession.objects.values().get()
        shown = compact(api, preview=True)
        assert (shown["number"], shown["state"], shown["engine"]) == (None, "preview", "own")
        assert AgentSession.objects.values().get() == row
        for model in (Compaction, Edit, Recap, PromptSnapshot):
            assert not model.objects.exists()
        assert api.get(PROMPT).content == before.content
        done = compact(api)
        for field in ("tokens_before", "tokens_after", "edits", "recap"):
            assert shown[field] == done[field]

    def test_no_gain_is_recorded_without_edits(self, api: Api) -> None:
        push(api, [request()])
        before = api.get(PROMPT).json()["messages"]
        done = compact(api)
        assert (done["state"], done["edits"]) == ("skipped", [])
        assert "no gain" in done["reason"]
        assert api.get(PROMPT).json()["messages"] == before

    def test_a_push_reports_why_its_prompt_cannot_fit(self, api: Api) -> None:
        api.post("sessions/", {"id": "small", "system": "Be brief. " * 50, "budget": {"input_tokens": 40}})
        [fired] = push(api, [request()], session="small")["fired"]
        assert (fired["trigger"], fired["state"]) == ("hard", "skipped")
        reason = api.get("sessions/small/prompt/").json()["reason"]
        assert "the system prompt, tools and memory alone take" in reason
        assert fired["reason"] == f"no gain: {reason}"

    def test_a_session_without_turns_can_be_compacted(self, api: Api) -> None:
        assert compact(api)["state"] == "skipped"

    def test_a_one_time_policy_is_not_stored(self, api: Api) -> None:
        fill(api, 6)
        done = compact(api, policy={"preset": "aggressive"}, instructions="Keep the names.")
        assert done["instructions"] == "Keep the names."
        assert api.get("sessions/s1/").json()["policy"] == BY_HAND

    @pytest.mark.parametrize(
        "body",
        [
            {"policy": "none"},
            {"policy": 5},
            {"policy": {"preset": []}},
            {"policy": {"name": {}}},
            {"policy": {"target": "x"}},
            {"policy": {"target": 5}},
            {"policy": {"steps": [[]]}},
            {"policy": {"tools": [{"pattern": 5}]}},
            {"policy": {"tools": [{"pattern": "x", "clip_tokens": "x"}]}},
            {"policy": {"tools": [5]}},
            {"preview": "maybe"},
            {"instructions": 5},
            {"instructions": "a\0b"},
            {"instruction": "x"},
        ],
    )
    def test_an_invalid_request_is_rejected(self, api: Api, body: dict[str, Any]) -> None:
        fill(api, 2)
        assert api.post(COMPACT, body).status_code == 400
        assert not Compaction.objects.exists()
        made = api.post("sessions/", {"id": "s2", **body})
        assert made.status_code == 400, made.content

    def test_a_second_compaction_is_rejected_while_one_is_open(
        self, api: Api, session: dict[str, Any]
    ) -> None:
        fill(api, 6)
        Compaction.objects.create(
            session_id=session["id"], number=1, trigger="soft", turn_index=0, snapshot_position=0
        )
        response = api.post(COMPACT)
        assert (response.status_code, code(response)) == (409, "compaction_open")

    def test_it_requires_the_push_scope(self, reader_api: Api) -> None:
        assert reader_api.post(COMPACT).status_code == 403


class TestReverting:
    def test_the_prompt_is_restored_byte_for_byte(self, api: Api) -> None:
        fill(api, 6)
        before = api.get(f"{PROMPT}?manifest=1").json()
        compact(api)
        response = api.post("sessions/s1/compactions/1/revert/")
        after = api.get(f"{PROMPT}?manifest=1").json()
        assert response.json()["state"] == "reverted"
        for field in ("messages", "manifest", "tokens", "occupancy", "fits"):
            assert after[field] == before[field]

    @pytest.mark.slow
    def test_the_revert_is_audited(self, api: Api) -> None:
        fill(api, 6)
        compact(api)
        api.post("sessions/s1/compactions/1/revert/")
        event = AuditEvent.objects.get(action="compaction.reverted")
        assert (event.target, event.detail, event.api_key is not None) == ("s1", {"compaction": 1}, True)

    @pytest.mark.slow
    def test_the_messages_have_the_pushed_bytes(self, api: Api) -> None:
        odd = b'{"role":"user","content":"caf\\u00e9 \\/","n":1e5,"m":1.0}'
        api.post("sessions/s1/turns/", b'{"messages":[' + odd + b"]}")
        fill(api, 6)
        before = api.get(PROMPT).content
        compact(api)
        assert odd in api.get(PROMPT).content
        api.post("sessions/s1/compactions/1/revert/")
        after = api.get(PROMPT).content
        assert before.split(b'"format"')[0] == after.split(b'"format"')[0]

    @pytest.mark.slow
    def test_compactions_compose_and_are_reverted_one_by_one(self, api: Api) -> None:
        states = []
        for number in range(3):
            fill(api, 4, start=4 * number)
            states.append(prompt(api, "?manifest=1"))
            assert compact(api)["state"] == "done"
        for number in (3, 2, 1):
            api.post(f"sessions/s1/compactions/{number}/revert/")
        whole = prompt(api, "?manifest=1")
        assert whole["tokens"] == whole["raw_tokens"]
        assert {entry["rule"] for entry in whole["manifest"]} == {"verbatim"}
        assert whole["messages"][: len(states[0]["messages"])] == states[0]["messages"]

    @pytest.mark.slow
    def test_a_compaction_in_the_middle_can_be_reverted(self, api: Api) -> None:
        for number in range(3):
            fill(api, 4, start=4 * number)
            compact(api)
        compacted = prompt(api)
        assert api.post("sessions/s1/compactions/2/revert/").status_code == 200
        assert prompt(api)["messages"][-4:] == compacted["messages"][-4:]
        fill(api, 4, start=20)
        assert compact(api)["number"] == 4
        prompt(api)
        prompt(api, "?format=openai")

    @pytest.mark.slow
    def test_past_prompts_keep_a_reverted_compaction(self, api: Api) -> None:
        fill(api, 6)
        compact(api)
        fill(api, 1, start=6)
        compacted = api.get(PROMPT).content
        fill(api, 1, start=7)
        api.post("sessions/s1/compactions/1/revert/")
        fill(api, 1, start=8)
        assert api.get(f"{PROMPT}?at_turn=6").content == compacted
        served = prompt(api)
        assert served["tokens"] == served["raw_tokens"]

    @pytest.mark.slow
    def test_only_applied_compactions_can_be_reverted(self, api: Api) -> None:
        push(api, [request()])
        compact(api)
        assert api.post("sessions/s1/compactions/1/revert/").status_code == 409
        fill(api, 6)
        compact(api)
        assert api.post("sessions/s1/compactions/2/revert/").status_code == 200
        again = api.post("sessions/s1/compactions/2/revert/")
        assert (again.status_code, code(again)) == (409, "not_revertible")
        assert api.post("sessions/s1/compactions/9/revert/").status_code == 404


class TestRecords:
    @pytest.mark.slow
    def test_they_are_listed_newest_first_in_pages(self, api: Api) -> None:
        for number in range(3):
            fill(api, 4, start=4 * number)
            compact(api)
        first = api.get("sessions/s1/compactions/?limit=2").json()
        assert [record["number"] for record in first["data"]] == [3, 2]
        rest = api.get(f"sessions/s1/compactions/?limit=2&cursor={first['next_cursor']}").json()
        assert [record["number"] for record in rest["data"]] == [1]
        assert rest["next_cursor"] is None

    def test_one_is_returned_with_its_edits(self, api: Api) -> None:
        fill(api, 6)
        done = compact(api)
        assert api.get("sessions/s1/compactions/1/").json() == done
        assert api.get("sessions/s1/compactions/2/").status_code == 404
        assert api.get(f"sessions/s1/compactions/{10**25}/").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("format", ["anthropic", "openai"])
def test_between_compactions_each_prompt_starts_with_the_previous_one(api: Api, format: str) -> None:
    api.post("sessions/", {"id": "p", "format": format, "budget": {"input_tokens": 8_000}})
    turn_of = whole_turn if format == "anthropic" else openai_turn
    before: list[Any] = []
    shared = total = rewritten = 0
    for number in range(40):
        fired = push(api, turn_of(number, lines=20), session="p")["fired"]
        messages = prompt(api, session="p")["messages"]
        if any(firing["state"] == "done" for firing in fired):
            rewritten += 1
        else:
            assert messages[: len(before)] == before
            shared += len(before)
        total += len(before)
        before = messages
    assert rewritten >= 2
    assert shared / total > 0.6


@pytest.mark.slow
def test_a_large_system_prompt_leaves_turns_between_compactions(api: Api) -> None:
    """Tail and recap are shares of what the system prompt leaves of the budget."""
    system = " ".join(f"Rule {number} forbids it." for number in range(900))
    api.post("sessions/", {"id": "large", "budget": {"input_tokens": 10_000}, "system": system})
    for number in range(30):
        push(api, whole_turn(number, lines=25), session="large")
    done = api.get("sessions/large/compactions/").json()["data"]
    assert 0 < len(done) <= 7


def test_a_compaction_continues_after_the_clock_was_set_back(
    api: Api, session: dict[str, Any], dispatched: list[tuple[str, str]]
) -> None:
    """Its worker was lost, and its lease ends hours later by the new time."""
    fill(api, 3)
    lost = Compaction.objects.create(
        session=AgentSession.objects.get(external_id="s1"), number=1, trigger="soft", turn_index=2,
        snapshot_position=4, state=Compaction.State.RUNNING, attempts=1,
        lease_until=timezone.now() + timedelta(hours=2), dispatched_at=timezone.now() + timedelta(hours=2),
    )  # fmt: skip
    assert compactions_sweep() == 1
    assert dispatched.count((COMPACTION_RUN, str(lost.pk))) == 1
