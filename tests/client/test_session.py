"""The client against the real server."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from contextapp_client import (
    Conflict,
    InvalidRequest,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    types,
)

from sessions.api.serializers import compactions, contents, imports, memory, prompts, sessions, turns
from sessions.models import AgentSession
from sessions.services.memory.facts import facts_decide
from sessions.services.memory.proposals import facts_propose
from sessions.services.search.indexing import search_index_run
from tests.client.both import Connect

QUESTION = {"role": "user", "content": "Why does the build fail?"}
ANSWER = {"role": "assistant", "content": "A test is missing."}
LONG = "\n".join(f"line {number}: nothing to see in module_{number % 7}.py" for number in range(400))


def call(number: int, text: str) -> list[dict[str, Any]]:
    """Return a tool call of the model, and the tool's result."""
    id = f"toolu_{number}"
    use = {"type": "tool_use", "id": id, "name": "run_command", "input": {"command": f"make {number}"}}
    result = {"type": "tool_result", "tool_use_id": id, "content": text}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def worked(session: Any, turns: int = 4) -> Any:
    """Return a session whose turns with long outputs exceed the budget of 4,000 tokens."""
    session.push([QUESTION])
    for number in range(turns):
        session.push(call(number, f"{number}\n{LONG}"))
    return session


class TestSessions:
    def test_it_is_created_once_and_found_by_its_id(self, app: Any) -> None:
        made = app.session("mine", create={"agent": "tests", "tags": ["a"]})
        again = app.session("mine", create={"agent": "others"})
        assert made.info()["id"] == again.info()["id"]
        assert again.info()["agent"] == "tests"
        assert app.session("mine").info()["external_id"] == "mine"

    def test_without_an_id_a_new_session_is_created(self, app: Any) -> None:
        assert app.session().id != app.session().id

    def test_they_are_listed(self, app: Any) -> None:
        for number in range(3):
            app.session(f"s{number}", create={"tags": ["odd"] if number % 2 else []})
        assert {found["external_id"] for found in app.sessions()} == {"s0", "s1", "s2"}
        assert [found["external_id"] for found in app.sessions(tag="odd")] == ["s1"]

    def test_an_unknown_session(self, app: Any) -> None:
        with pytest.raises(NotFound) as caught:
            app.session("nowhere").info()
        assert (caught.value.status, caught.value.code) == (404, "not_found")

    def test_a_wrong_key(self, connect: Connect, served_url: str) -> None:
        with pytest.raises(NotAuthenticated):
            connect(served_url, "ctx_wrong").session("s").info()

    def test_a_key_without_the_admin_scope(self, session: Any) -> None:
        with pytest.raises(NotAllowed) as caught:
            session.delete()
        assert caught.value.code == "missing_scope"


class TestSync:
    def test_the_whole_history_is_sent_and_the_prompt_returned(self, session: Any) -> None:
        history: list[Any] = [QUESTION]
        assert session.sync(history).params["messages"] == history
        response = {
            "type": "message",
            **ANSWER,
            "model": "claude-haiku-4-5",
            "usage": {"input_tokens": 9, "output_tokens": 2},
        }
        history += [response, {"role": "user", "content": "Write it."}]
        prompt = session.sync(history, system="Be brief.")
        assert prompt.params["messages"] == [QUESTION, ANSWER, history[2]]
        assert prompt.params["system"] == "Be brief."
        assert prompt.reconciled is not None
        assert (prompt.reconciled["status"], prompt.reconciled["first_new"]) == ("appended", 1)
        assert [turn["model"] for turn in session.turns()][1:] == ["claude-haiku-4-5"]

    def test_a_history_that_was_edited_continues_in_a_fork(self, session: Any) -> None:
        session.sync([QUESTION, ANSWER, {"role": "user", "content": "Write it."}])
        forked = session.sync([QUESTION, ANSWER, {"role": "user", "content": "Leave it."}])
        assert forked.reconciled is not None
        assert forked.reconciled["status"] == "forked"
        assert forked.reconciled["session"] != session.info()["id"]


class TestTurns:
    def test_a_push_returns_its_result(self, session: Any) -> None:
        session.push([QUESTION])
        pushed = session.push(
            [ANSWER], usage={"input_tokens": 12, "output_tokens": 5}, model="claude-sonnet-5-5"
        )
        assert pushed["turn"] == 1
        assert pushed["positions"] == {"first": 1, "last": 1}
        assert pushed["prompt"]["budget"] == 4000
        assert pushed["cost_microusd"] == 12 * 2 + 5 * 10

    def test_a_call_that_is_reported_twice_is_billed_once(self, app: Any, session: Any) -> None:
        reported = {
            "usage": {"input_tokens": 12, "output_tokens": 5},
            "request_id": f"req_{session.id}",
            "response_id": f"msg_{session.id}",
        }
        assert session.push([QUESTION, ANSWER], **reported)["cost_microusd"] > 0
        other = app.session(create={"model": "claude-sonnet-5-5"})
        assert other.push([QUESTION, ANSWER], **reported)["cost_microusd"] is None
        synced = app.session(create={"model": "claude-sonnet-5-5"})
        synced.sync([QUESTION, ANSWER, {"role": "user", "content": "Go on."}], **reported)
        assert synced.info()["cost_microusd"] == 0

    def test_what_a_response_reports_about_its_compaction_is_recorded(self, session: Any) -> None:
        session.push([QUESTION, *call(1, "1"), *call(2, "2")])
        edit = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 1, "cleared_input_tokens": 900}
        response = {
            "type": "message",
            **ANSWER,
            "model": "claude-haiku-4-5",
            "usage": {"input_tokens": 90, "output_tokens": 2},
            "context_management": {"applied_edits": [edit]},
        }
        assert [fired["trigger"] for fired in session.push([response])["fired"]] == ["provider"]
        history = [message for turn in session.turns() for message in turn["messages"]]
        more = {**response, "context_management": {"applied_edits": [{**edit, "cleared_tool_uses": 2}]}}
        session.sync([*history, {"role": "user", "content": "Go on."}, more])
        assert [row["trigger"] for row in session.compactions()] == ["provider", "provider"]

    def test_one_idempotency_key_is_one_turn(self, session: Any) -> None:
        first = session.push([QUESTION], idempotency_key="k1")
        assert session.push([QUESTION], idempotency_key="k1") == first
        assert session.info()["turns"] == 1
        with pytest.raises(InvalidRequest) as caught:
            session.push([ANSWER], idempotency_key="k1")
        assert caught.value.code == "idempotency_mismatch"

    def test_a_stale_writer(self, session: Any) -> None:
        session.push([QUESTION], expected_turn=0)
        with pytest.raises(Conflict) as caught:
            session.push([ANSWER], expected_turn=0)
        assert caught.value.code == "stale_turn"

    def test_they_are_listed_with_their_messages(self, session: Any) -> None:
        session.push([QUESTION])
        session.push([ANSWER])
        assert [turn["messages"] for turn in session.turns()] == [[QUESTION], [ANSWER]]
        assert [turn["turn"] for turn in session.turns(last=1)] == [1]


class TestPrompt:
    def test_params_can_be_passed_to_the_provider(self, session: Any) -> None:
        tool = {"name": "look", "description": "Look.", "input_schema": {"type": "object", "properties": {}}}
        session.push([QUESTION], system="Be brief.", tools=[tool])
        params = session.prompt().params
        assert params == {"system": "Be brief.", "messages": [QUESTION], "tools": [tool]}
        translated = session.prompt(format="openai").params
        assert translated["messages"][0] == {"role": "system", "content": "Be brief."}
        assert translated["tools"][0]["function"]["name"] == "look"
        assert set(translated) == {"messages", "tools"}
        responses = session.prompt(format="openai-responses").params
        assert set(responses) == {"instructions", "input", "tools"}
        assert (responses["instructions"], responses["tools"][0]["name"]) == ("Be brief.", "look")
        gemini = session.prompt(format="gemini").params
        assert set(gemini) == {"contents", "config"}
        assert gemini["config"]["system_instruction"] == {"parts": [{"text": "Be brief."}]}
        assert gemini["config"]["tools"][0]["functionDeclarations"][0]["name"] == "look"

    def test_an_unchanged_prompt_returns_304(self, session: Any, monkeypatch: Any) -> None:
        session.push([QUESTION])
        statuses: list[int] = []
        transport = session.transport
        real = transport.call

        def counted(*args: Any, **options: Any) -> Any:
            answer = yield from real(*args, **options)
            statuses.append(answer.status)
            return answer

        monkeypatch.setattr(transport, "call", counted)
        first = session.prompt()
        first.params["messages"].append("mine to change")
        assert session.prompt().params["messages"] == [QUESTION]
        session.push([ANSWER])
        assert session.prompt().params["messages"][:2] == [QUESTION, ANSWER]
        assert statuses == [200, 304, 201, 200]

    def test_the_manifest_has_the_source_of_each_message(self, session: Any) -> None:
        prompt = worked(session).prompt(manifest=True)
        assert prompt.manifest is not None
        assert "verbatim" in {entry["rule"] for entry in prompt.manifest}
        assert len({entry["rule"] for entry in prompt.manifest}) > 1
        assert session.prompt().manifest is None

    def test_it_names_the_calls_at_its_end(self, app: Any) -> None:
        session = app.session(create={"model": "claude-sonnet-4-5"})
        asked, answered = call(0, "x")
        session.push([QUESTION, asked])
        assert session.prompt().open_calls == ("toolu_0",)
        session.push([answered])
        assert session.prompt().open_calls == ()

    def test_it_fits_and_past_prompts_can_be_fetched(self, session: Any) -> None:
        worked(session)
        prompt = session.prompt()
        assert prompt.fits
        assert prompt.tokens <= prompt.budget < prompt.raw_tokens
        assert session.prompt(at_turn=0).params["messages"] == [QUESTION]

    def test_it_is_valid_in_each_format(self, app: Any, session: Any) -> None:
        worked(session)
        formats: tuple[types.Format, ...] = ("anthropic", "openai", "openai-responses")
        for format in formats:
            assert app.validate(session.prompt(format=format).params, format=format) == []
        assert app.validate({"messages": call(1, "x")[1:]})[0]["rule"]


class TestCompaction:
    def test_preview_compact_revert(self, app: Any) -> None:
        session = worked(app.session(create={"budget": {"input_tokens": 100_000}}))
        whole = session.prompt().tokens
        preview = session.compact(policy="aggressive", preview=True)
        assert preview["state"] == "preview"
        assert session.prompt().tokens == whole
        done = session.compact(policy="aggressive", instructions="keep the names of modules")
        assert done["state"] == "done"
        assert session.prompt().tokens < whole
        assert done["number"] is not None
        assert [record["number"] for record in session.compactions()] == [done["number"]]
        assert session.compaction(done["number"])["edits"]
        assert session.revert(done["number"])["state"] == "reverted"
        assert session.prompt().tokens == whole

    def test_a_recap_is_edited(self, app: Any) -> None:
        policy = {"soft": 0, "hard": 0, "tail_share": 0.01, "target": 0.05}
        session = app.session(create={"policy": policy, "budget": {"input_tokens": 6_000}})
        prose = " ".join(f"Parcel {number} goes to zone {number % 7}." for number in range(40))
        for number in range(8):
            session.push([{"role": "user", "content": f"Batch {number}?"}, {**ANSWER, "content": prose}])
        done = session.compact()
        assert done["recap"]
        edited = session.edit_recap(done["number"], "## Decisions\n- the tests stay")
        assert edited["trigger"] == "edit"
        assert "the tests stay" in str(session.prompt().params["messages"])

    def test_removed_content_is_retrieved(self, session: Any) -> None:
        worked(session)
        handle = re.search(r"\bh_[a-z2-7]{10}\b", str(session.prompt().params["messages"]))
        assert handle
        whole = session.expand(handle[0])
        assert "line 399" in whole["text"]
        assert session.expand(handle[0], offset=3, limit=2)["text"].splitlines()[0].startswith("line 2:")
        assert session.expand(handle[0], grep="^line 7[01]:")["match_count"] == 2

    def test_search_finds_removed_content(self, session: Any) -> None:
        worked(session)
        assert {hit["turn"] for hit in session.search('"line 399"')} == {1, 2, 3, 4}

    def test_search_of_the_project_names_the_session(self, app: Any, session: Any) -> None:
        worked(session)
        search_index_run()
        assert {hit["session"]["external_id"] for hit in app.search('"line 399"')} == {session.id}

    def test_a_pinned_output_stays_until_it_is_unpinned(self, session: Any) -> None:
        pinned = LONG[:4_000]
        session.push([QUESTION])
        position = session.push(call(0, pinned))["positions"]["last"]
        session.pin(position)
        for number in range(1, 4):
            session.push(call(number, f"{number}\n{LONG}"))
        assert json.dumps(pinned) in json.dumps(session.prompt().params["messages"])
        session.unpin(position)
        session.compact(policy="aggressive")
        assert json.dumps(pinned) not in json.dumps(session.prompt().params["messages"])


class TestTools:
    @pytest.mark.parametrize("format", ["anthropic", "openai", "openai-responses"])
    def test_they_are_available_in_each_format(self, app: Any, format: types.Format) -> None:
        names = {
            tool["function"]["name"] if format == "openai" else tool["name"] for tool in app.tools(format)
        }
        assert {"expand_clip", "search_history"} <= names

    def test_a_call_of_the_model(self, session: Any) -> None:
        worked(session)
        handle = re.search(r"\bh_[a-z2-7]{10}\b", str(session.prompt().params["messages"]))
        assert handle
        result = session.call_tool("expand_clip", {"handle": handle[0], "grep": "line 399"})
        assert not result["is_error"]
        assert "line 399" in result["content"]
        assert session.call_tool("expand_clip", '{"handle": "h_none"}')["is_error"]


class TestMemory:
    def test_read_patch_and_revisions(self, session: Any) -> None:
        assert session.memory()["revision"] == 0
        session.patch_memory({"task": "Mend the build", "decisions": ["no new tools"]})
        now = session.patch_memory(
            {"decisions": None, "next": "test"}, revision=1, author="model", reason="done"
        )
        assert now["revision"] == 2
        assert now["memory"]["task"] == "Mend the build"
        assert now["memory"]["decisions"] == []
        assert [revision["author"] for revision in session.memory_revisions()] == ["model", "harness"]
        changed = {change["field"] for change in session.memory_diff(first=1, last=2)["changes"]}
        assert changed == {"decisions", "next"}

    def test_facts_of_other_sessions(self, app: Any, session: Any) -> None:
        session.patch_memory({"decisions": ["no new tools", "pin the compiler"]})
        stored = AgentSession.objects.get(external_id=session.id)
        facts = facts_propose(session=stored)
        facts_decide(project=stored.project, ids=[fact.pk for fact in facts], state="accepted")
        other = app.session("other", create={"agent": stored.agent})
        offered = {fact["text"]: fact["id"] for fact in other.memory_offers()}
        now = other.take_offers([offered["pin the compiler"]])
        assert now["memory"]["decisions"] == ["pin the compiler"]
        assert other.take_offers()["memory"]["decisions"] == ["pin the compiler", "no new tools"]
        assert other.memory_offers() == []

    def test_a_stale_revision(self, session: Any) -> None:
        session.patch_memory({"task": "a"})
        with pytest.raises(Conflict) as caught:
            session.patch_memory({"task": "b"}, revision=0)
        assert (caught.value.status, caught.value.code) == (412, "precondition_failed")


def test_facts_are_proposed_and_reviewed(connect: Connect, served_url: str, admin_key: str) -> None:
    app = connect(served_url, admin_key)
    session = app.session(create={"agent": "tests"})
    session.patch_memory({"decisions": ["pin the compiler"]})
    [fact] = session.propose_facts([{"field": "decisions", "text": "pin the compiler"}])
    assert [each["id"] for each in app.facts(state="proposed", agent="tests")] == [fact["id"]]
    assert app.fact_review(fact["id"], state="accepted")["state"] == "accepted"
    assert list(app.facts(state="proposed")) == []


def test_a_session_is_exported_and_imported(connect: Connect, served_url: str, admin_key: str) -> None:
    app = connect(served_url, admin_key)
    session = app.session("fix-42", create={})
    session.push([QUESTION])
    assert session.change_title("The build")["title"] == "The build"
    assert list(session.comments()) == []
    exported = session.export()
    session.delete()
    found = app.import_log(exported, name="session.jsonl")
    assert found["sessions"][0]["state"] == "new"
    assert app.session("fix-42").info()["title"] == "The build"
    assert [each["id"] for each in app.imports()] == [found["id"]]


def test_usage(app: Any, session: Any) -> None:
    session.push([QUESTION, ANSWER], usage={"input_tokens": 12, "output_tokens": 5})
    used = app.usage(group_by=["model", "agent"])
    assert used["total"]["cost_microusd"] == 12 * 2 + 5 * 10
    assert [(row["model"], row["agent"]) for row in used["data"]] == [("claude-sonnet-5-5", "tests")]
    assert app.usage(group_by="model")["group_by"] == ["model"]


def test_messages_are_compacted_without_a_session(app: Any) -> None:
    messages = [QUESTION, *(message for number in range(4) for message in call(number, f"{number}\n{LONG}"))]
    compacted = app.compact({"messages": messages}, budget=4_000, policy="masking")
    assert (compacted["fits"], compacted["record"]["state"]) == (True, "done")
    assert app.validate({"messages": compacted["messages"]}) == []
    trimmed = app.compact({"messages": messages}, window={"max_messages": 2})
    assert trimmed["messages"][-2:] == messages[-2:]
    assert trimmed["window"] == {"dropped_messages": 7, "dropped_turns": 3, "pairs_kept": 1, "over_by": 0}
    assert list(app.sessions()) == []


def test_the_policy_changes(session: Any) -> None:
    assert session.change_policy({"preset": "masking", "target": 0.3})["policy"] == {
        "preset": "masking",
        "target": 0.3,
    }
    with pytest.raises(InvalidRequest):
        session.change_policy("tiny")


def test_an_id_in_the_settings_of_a_new_session_is_rejected(app: Any) -> None:
    with pytest.raises(ValueError, match="first argument"):
        app.session(create={"id": "s9"})
    assert app.session("s9", create={"id": "s9"}).id == "s9"


def test_a_list_instead_of_the_arguments_of_a_call_is_rejected(app: Any) -> None:
    for call in (app.compact, app.validate):
        with pytest.raises(TypeError, match="arguments of a model call"):
            call([{"role": "user", "content": "hi"}])


def test_the_budget_changes(session: Any) -> None:
    assert session.change_budget(2_000)["prompt"]["budget"] == 2_000
    assert session.change_budget(None)["prompt"]["budget"] == 984_000  # the window, without the output


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (types.SessionInfo, sessions.Session),
        (types.PushResult, turns.TurnPushed),
        (types.CompactionRecord, compactions.CompactionDetail),
        (types.Content, contents.Content),
        (types.CompactedPrompt, prompts.CompactedPrompt),
        (types.Fact, memory.MemoryFact),
        (types.Import, imports.ImportJobDetail),
    ],
)
def test_types_match_the_servers_fields(ours: Any, theirs: Any) -> None:
    assert ours.__annotations__.keys() <= theirs().fields.keys()


def test_a_log_is_imported(app: Any) -> None:
    log = json.dumps({"messages": [QUESTION, ANSWER]}).encode()
    found = app.import_log(log, name="run-7.json")
    assert (found["state"], found["sessions"][0]["state"]) == ("done", "new")
    assert app.import_get(found["id"])["sessions"] == found["sessions"]
    with pytest.raises(Conflict):
        app.import_cancel(found["id"])
