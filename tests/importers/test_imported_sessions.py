"""Imported sessions: secrets, prompts over the API, compactions, costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest
from django.test import Client
from django.urls import reverse

import pricing
from accounts.models import Project
from compaction import dialects, policy
from compaction.continuation import Continuation
from compaction.messages import Usage
from compaction.sizes.breakdown import TokenBreakdown
from importers.base import ClientCompaction, ImportedMessage, ImportedSession, ImportedTurn, LogFile
from pricing.tokenizers import token_factor
from sessions.models import AgentSession, Compaction
from sessions.selectors.convert import message_bytes
from sessions.selectors.past_prompts.outline import outline_at
from sessions.selectors.redaction import redaction_of
from sessions.services.compactions.apply import session_compact
from sessions.services.imports.find import ImportConflictError
from sessions.services.imports.reader import Reader
from sessions.services.imports.store import prepared_import, session_import
from tests.api.client import Api
from tests.api.test_redaction import everything_stored
from tests.redaction.secrets import TOKENS

pytestmark = pytest.mark.django_db

MODEL = "claude-opus-4-5"
USAGE = Usage(uncached_tokens=10, cache_read_tokens=500, cache_write_tokens=2_000, output_tokens=80)


def message(role: str, content: Any, name: str, **flags: bool) -> ImportedMessage:
    return ImportedMessage(body={"role": role, "content": content}, source_id=name, **flags)


def step(n: int, output: str = "line of output\n" * 120, **facts: Any) -> ImportedTurn:
    """Return a turn with the result of the previous call and a new call."""
    found = [{"type": "tool_result", "tool_use_id": f"c{n - 1}", "content": f"{n}: {output}"}]
    call = [{"type": "tool_use", "id": f"c{n}", "name": "Bash", "input": {"command": f"make {n}"}}]
    messages = [
        message("user", found if n else "Make all of it", f"u{n}"),
        message("assistant", call, f"a{n}"),
    ]
    return ImportedTurn(messages=messages, model=MODEL, **facts)


def session_of(turns: Sequence[ImportedTurn], **facts: Any) -> ImportedSession:
    return ImportedSession(
        external_id="log-1", format="anthropic", agent="maker", model=MODEL, turns=turns, **facts
    )


def take(project: Project, turns: Sequence[ImportedTurn], **facts: Any) -> AgentSession:
    session_import(project=project, imported=session_of(turns, **facts))
    return AgentSession.objects.get(project=project, external_id="log-1")


def served(api: Api, query: str = "") -> dict[str, Any]:
    response = api.get(f"sessions/log-1/prompt/?{query}")
    assert response.status_code == 200
    prompt: dict[str, Any] = response.json()
    checked = api.post(
        "prompts/validate/",
        {"format": "anthropic", "messages": prompt["messages"], "model": MODEL},
    ).json()
    assert checked["valid"], checked
    return prompt


class TestSecrets:
    KIND, SECRET = next((kind, secret) for kind, secret in TOKENS if kind == "github-token")

    def leaky(self) -> ImportedSession:
        turns = [step(0), step(1, output=f"export GITHUB_TOKEN={self.SECRET}"), step(2)]
        return session_of(
            turns,
            title=f"Use {self.SECRET}",
            system=f"The token is {self.SECRET}",
            tools=[{"name": "Bash", "description": self.SECRET, "input_schema": {"type": "object"}}],
            metadata={"branch": self.SECRET, self.SECRET: 1},
            tags=[self.SECRET],
        )

    def test_no_secret_is_stored_counted_or_hashed(self, project: Project, api: Api) -> None:
        result = session_import(project=project, imported=self.leaky())
        session = AgentSession.objects.get(pk=result.session.pk)
        assert result.redacted == {self.KIND: 7}
        rows = session.messages.select_related("blob").order_by("position")
        stored = [message_bytes(message).decode() for message in rows]
        texts = [
            session.title,
            *session.tags,
            str(session.metadata),
            *stored,
            orjson.dumps(served(api)).decode(),
        ]
        assert not any(self.SECRET in text for text in texts)
        assert all(f"[redacted:{self.KIND}:" in text for text in (session.title, *session.tags))
        whole = dialects.parse([orjson.loads(text) for text in stored], format="anthropic")
        assert Continuation().after(whole, "anthropic").regular
        clean = session_import(project=project, imported=replace(self.leaky(), external_id="again")).session
        assert clean.shown_components == session.shown_components

    def test_importing_again_adds_nothing(self, project: Project) -> None:
        session_import(project=project, imported=self.leaky())
        again = session_import(project=project, imported=self.leaky())
        assert not again.changed


def summary(name: str) -> ImportedTurn:
    """Return a turn that begins with the client's summary of all earlier messages."""
    return ImportedTurn(
        messages=[message("user", f"What was done {name}", f"s{name}", is_summary=True)],
        client_compaction=ClientCompaction(trigger="auto", tokens_before=9_000),
    )


class TestPrompts:
    def test_a_prompt_begins_after_the_clients_compaction(self, project: Project, api: Api) -> None:
        turns = [step(0), step(1), step(2), summary("A"), step(4), step(5)]
        session = take(project, turns, system="Be brief.")
        tokens = sum(session.messages.filter(position__gte=6).values_list("tokens", flat=True))
        prompt = served(api)
        assert prompt["tokens"] == tokens + session.shown_components["system"]
        assert prompt["tokens"] == prompt["raw_tokens"] == sum(session.context_components.values())
        assert "What was done A" in str(prompt["messages"][0])
        before = served(api, "at_turn=2")
        assert "Make all of it" in str(before["messages"][0])
        assert "What was done A" in str(served(api, "at_turn=4")["messages"][0])
        assert served(api, "at_turn=5")["tokens"] == prompt["tokens"]

    def test_the_window_is_the_size_at_which_the_client_compacted(self, project: Project) -> None:
        at_its_limit = replace(
            summary("A"), client_compaction=ClientCompaction(trigger="auto", tokens_before=167_000)
        )
        imported = replace(session_of([step(0), at_its_limit]), model="claude-opus-4-6")
        window = session_import(project=project, imported=imported).session.context_window
        assert (window, pricing.context_window("claude-opus-4-6")) == (200_000, 1_000_000)

    def test_a_compaction_changes_only_what_the_client_still_sends(self, project: Project, api: Api) -> None:
        session = take(project, [*map(step, range(12)), summary("A"), *map(step, range(13, 30))])
        compaction = session_compact(session=session, trigger="user")
        assert compaction.state == Compaction.State.DONE
        assert min(compaction.edits.values_list("position", flat=True)) >= 24
        outline = outline_at(session=AgentSession.objects.get(), index=30)
        assert outline is not None
        assert outline.tokens == served(api)["tokens"] == compaction.tokens_after

    def test_a_later_compaction_by_the_client_also_removes_our_edits(
        self, project: Project, api: Api
    ) -> None:
        turns = [step(n) for n in range(12)]
        session_compact(session=take(project, turns), trigger="user")
        prompt = served(api) if take(project, [*turns, summary("A"), step(13)]) else {}
        assert "What was done A" in str(prompt["messages"][0])
        assert len(prompt["messages"]) == 3
        assert prompt["tokens"] == prompt["raw_tokens"]

    def test_an_open_call_at_the_end_is_detected(self, project: Project, api: Api) -> None:
        session = take(project, [step(0), step(1)])
        assert (session.open_calls, session.needs_repair) == (["c1"], False)
        served(api)
        answered = ImportedTurn(messages=step(2).messages[:1])
        assert take(project, [step(0), step(1), answered]).open_calls == []
        assert served(api)["messages"][-1]["role"] == "user"

    def test_an_open_call_with_an_unstorable_id_is_imported(self, project: Project, api: Api) -> None:
        call = [{"type": "tool_use", "id": "c\0", "name": "Bash", "input": {}}]
        turn = ImportedTurn(messages=[*step(0).messages[:1], message("assistant", call, "a0")], model=MODEL)
        assert take(project, [turn]).open_calls == ["c\ufffd"]
        served(api)

    def test_invalid_tool_pairs_are_repaired(self, project: Project, api: Api) -> None:
        session = take(project, [step(0), step(3), step(4)])
        assert session.needs_repair
        served(api)

    def test_an_import_can_be_continued_over_the_api(self, project: Project, api: Api) -> None:
        take(project, [step(0)])
        pushed = {"messages": [{"role": "user", "content": step(1).messages[0].body["content"]}]}
        assert api.post("sessions/log-1/turns/", pushed).status_code == 201
        assert len(served(api)["messages"]) == 3
        with pytest.raises(ImportConflictError, match="continued over the API"):
            take(project, [step(0), step(1), step(2)])
        assert not session_import(project=project, imported=session_of([step(0)])).changed


def test_a_pushed_session_is_never_touched(project: Project, api: Api) -> None:
    api.post("sessions/", {"id": "log-1", "format": "anthropic"})
    with pytest.raises(ImportConflictError, match="pushed over the API"):
        take(project, [step(0)])
    assert AgentSession.objects.get(project=project).message_count == 0


class TestCompacted:
    """After a compaction, an import changes no stored message."""

    @pytest.fixture
    def compacted(self, project: Project) -> AgentSession:
        """Return a session whose last answer was imported when only one of its two calls was written."""
        session = take(project, [step(n) for n in range(12)])
        session.budget_tokens = 3_000
        session.save()
        done = session_compact(session=session, trigger="user", policy=policy.Policy())
        assert done.state == Compaction.State.DONE
        return AgentSession.objects.get(pk=session.pk)

    def test_a_log_that_has_grown_is_appended(
        self, project: Project, api: Api, compacted: AgentSession
    ) -> None:
        before = served(api)
        session = take(project, [step(n) for n in range(14)])
        assert (session.turn_count, session.message_count) == (14, 28)
        prompt = served(api)
        shared = len(before["messages"]) - 1  # the last message is the call without its result
        assert prompt["messages"][:shared] == before["messages"][:shared]
        added = session.messages.filter(position__gte=24).values_list("tokens", flat=True)
        assert sum(session.shown_components.values()) == sum(compacted.shown_components.values()) + sum(added)
        assert prompt["tokens"] == sum(session.shown_components.values())
        assert session.open_calls == ["c13"]

    def test_the_last_turn_is_unchanged_and_its_new_messages_follow(
        self, project: Project, api: Api, compacted: AgentSession
    ) -> None:
        stored = list(compacted.messages.order_by("position").values_list("position", "body"))
        call = {"type": "tool_use", "id": "late", "name": "Bash", "input": {}}
        late = message("assistant", [*step(11).messages[1].body["content"], call], "a11")
        results = [{"type": "tool_result", "tool_use_id": name, "content": "ok"} for name in ("c11", "late")]
        turns = [
            *(step(n) for n in range(11)),
            replace(step(11), messages=[step(11).messages[0], late]),
            replace(step(12), messages=[message("user", results, "u12"), step(12).messages[1]]),
        ]
        session = take(project, turns)
        kept = session.messages.order_by("position").values_list("position", "body")
        assert list(kept)[: len(stored)] == stored
        assert (session.turn_count, session.message_count) == (13, 26)
        assert session.needs_repair  # a result whose call was not stored
        assert "'tool_use_id': 'late'" not in str(served(api)["messages"])
        assert not session_import(project=project, imported=session_of(turns)).changed

    def test_counters_continue(self, project: Project, compacted: AgentSession) -> None:
        more = [step(n) for n in range(12)] + [step(12, usage=USAGE, response_id="r12")]
        session = take(project, more)
        assert session.output_tokens == USAGE.output_tokens
        assert session.last_prompt_tokens == USAGE.prompt_tokens
        assert session.context_components == dict(_breakdown(session).tokens)


def _breakdown(session: AgentSession) -> TokenBreakdown:
    values = [orjson.loads(message_bytes(m)) for m in session.messages.order_by("position")]
    parsed = dialects.parse(values, format="anthropic")
    tokens = session.messages.order_by("position").values_list("tokens", flat=True)
    return TokenBreakdown().add(replace(v, tokens=t) for v, t in zip(parsed, tokens, strict=True))


class TestCosts:
    def test_the_cost_in_the_log_has_precedence(self, project: Project) -> None:
        session = take(project, [step(0, usage=USAGE, cost_microusd=1_234), step(1, usage=USAGE)])
        by_table = pricing.price(MODEL, USAGE).microusd
        assert list(session.turns.order_by("index").values_list("cost_microusd", flat=True)) == [
            1_234,
            by_table,
        ]
        assert session.cost_microusd == 1_234 + (by_table or 0)

    def test_output_tokens_from_the_start_of_the_stream_are_estimated(
        self, project: Project, api: Api, member_client: Client
    ) -> None:
        start = replace(USAGE, output_tokens=3)
        text = "The pool hands out a connection that another thread has closed. " * 40
        long = ImportedTurn(messages=[message("assistant", text, "long")], usage=start)
        short = ImportedTurn(messages=[message("assistant", "Done.", "short")], usage=start)
        session = take(project, [step(0, usage=USAGE), long, short])
        turns = api.get("sessions/log-1/turns/").json()["data"]
        assert [turn["output_reported"] for turn in turns] == [None, 3, None]
        written = session.messages.get(source_id="long").tokens
        assert turns[1]["usage"]["output"] == round(written * token_factor(MODEL)) > 500
        by_table = pricing.price(MODEL, replace(USAGE, output_tokens=turns[1]["usage"]["output"]), None)
        assert turns[1]["cost_microusd"] == by_table.microusd
        assert session.output_tokens == sum(turn["usage"]["output"] for turn in turns)
        page = member_client.get(reverse("session", args=["alpha", session.pk])).text
        assert "estimated for 1 call" in page

    def test_imported_one_hour_cache_writes_cost_more(self, project: Project) -> None:
        session = take(project, [step(0, usage=USAGE, cache_write_1h_tokens=2_000)])
        one_hour_tokens = pricing.price(MODEL, USAGE, cache_write_1h_tokens=2_000).microusd
        assert session.cost_microusd == one_hour_tokens
        assert one_hour_tokens > (pricing.price(MODEL, USAGE).microusd or 0)

    def test_a_model_without_a_price_is_counted_as_such(self, project: Project) -> None:
        turns = [replace(step(0, usage=USAGE), model="nobody-knows-it")]
        assert take(project, turns).unpriced_turns == 1


def test_a_secret_in_the_name_of_a_file_or_a_model_is_redacted(project: Project) -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"
    log = {
        "model": secret,
        "messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}],
    }
    file = LogFile(name=f"run-{secret}.json", data=orjson.dumps(log))
    read = Reader(redaction=redaction_of(project)).read_file(file)
    assert read.sessions
    for prepared in read.sessions:
        prepared_import(project=project, prepared=prepared, origin=read.importer)
    assert secret.encode() not in everything_stored()
    assert "[redacted:github-token:" in AgentSession.objects.get().external_id
