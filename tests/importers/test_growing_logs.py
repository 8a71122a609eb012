"""Importing a growing log in parts has the same result as importing it at once."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import pytest
from django.db.models import Value
from django.db.models.functions import Concat
from django.forms.models import model_to_dict

from accounts.models import Project
from accounts.services.projects import project_create
from importers.base import ImportedSession, LogFile
from importers.registry import IMPORTERS
from sessions.models import AgentSession, Turn
from sessions.selectors.convert import message_bytes
from sessions.services.imports.find import ImportConflictError
from sessions.services.imports.store import ImportResult, session_import
from sessions.services.sessions.lifecycle import session_delete
from sessions.services.sessions.pins import message_pin
from sessions.store import bodies
from sessions.store.flags import MessageFlag
from tests.importers.logs import SESSION, block, jsonl, result, text, tool_use, user

pytestmark = pytest.mark.django_db


def lines() -> list[dict[str, Any]]:
    """Return a Claude Code log with difficult cases for incremental imports."""
    thought = {"type": "thinking", "thinking": "Two files at once.", "signature": "c2ln"}
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b1", "sessionId": SESSION}
    lines = [
        {"type": "summary", "summary": "Of another session", "leafUuid": "not here"},
        user("<command-name>/clear</command-name>", "u0", isMeta=True),
        user("Fix the two files", "u1"),
        # One response in four lines: its calls run in parallel, and the first result comes in between.
        block("m1", thought, "a1", output=1),
        block("m1", text("I read both."), "a2", output=9),
        block("m1", tool_use("c1"), "a3", output=30),
        result("c1", "first file\n" * 40, "r1"),
        block("m1", tool_use("c2"), "a4", output=55),
        # A user message that arrived before the second result.
        user("And be quick", "u2"),
        result("c2", "x" * (bodies.BLOB_BYTES + 1), "r2"),
        block("m2", tool_use("c3"), "a5", output=12),
        # The same block again, with the final count.
        block("m2", tool_use("c3"), "a6", output=80),
        {"type": "ai-title", "aiTitle": "Two files", "sessionId": SESSION},
        result("c3", "done", "r3"),
        block("m3", text("Fixed."), "a7", output=5),
        # A sub-agent: a separate session.
        user("Look for tests", "s1", isSidechain=True, agentId="k1"),
        block("n1", tool_use("d1"), "s2", isSidechain=True, agentId="k1"),
        boundary | {"compactMetadata": {"trigger": "auto", "preTokens": 900}},
        user("Summary of what was done", "u3", isCompactSummary=True),
        user("Now the docs", "u4"),
        block("m4", tool_use("c4"), "a8", output=7),
        result("c4", "one", "r4"),
        user("[Request interrupted by user]", "u5"),
        user("No, the tests", "u6"),
        block("m5", text("All right."), "a9", output=4),
    ]
    return [line | {"timestamp": f"2026-01-05T10:{n:02}:00Z"} for n, line in enumerate(lines)]


LINES = lines()


def sessions_of(log: LogFile) -> Iterator[ImportedSession]:
    """Return what the importer reads from a log, even if it is too short to be recognized."""
    for item in IMPORTERS["claude-code"].read(log):
        if isinstance(item, ImportedSession):
            yield item


def take(project: Project, lines: Sequence[dict[str, Any]], tail: bytes = b"") -> list[ImportResult]:
    log = LogFile(name=f"{SESSION}.jsonl", data=jsonl(*lines).data + tail)
    return [session_import(project=project, imported=session) for session in sessions_of(log)]


def rows(project: Project) -> list[Any]:
    """Return all stored data of a project's sessions, except ids and times that differ between runs."""
    return [_session_rows(session) for session in project.agent_sessions.order_by("external_id")]


def _session_rows(session: AgentSession) -> Any:
    # The revision counts changes of the prompt, so it differs between the imports.
    facts = model_to_dict(session, exclude=["id", "project", "parent", "edits_revision", "created_at"])
    turns = [model_to_dict(turn, exclude=["session"]) for turn in session.turns.order_by("index")]
    messages = [
        (model_to_dict(message, exclude=["session", "body", "blob"]), message_bytes(message))
        for message in session.messages.select_related("blob").order_by("position")
    ]
    return session.parent and session.parent.external_id, facts, turns, messages


@pytest.fixture(scope="module")
def cuts() -> list[int]:
    """Return every position at which the log may be cut, from the first line of the conversation on."""
    return list(range(3, len(LINES)))


@pytest.fixture
def whole(other_project: Project) -> list[Any]:
    take(other_project, LINES)
    return rows(other_project)


def test_the_log_contains_the_difficult_cases(whole: list[Any]) -> None:
    (_, facts, turns, _), (parent, *_) = whole
    assert [turn["client_compaction"] is not None for turn in turns].count(True) == 1
    assert facts["turn_count"] == len(turns) == 5
    assert facts["title"] == "Two files"
    assert facts["output_tokens"] == 55 + 80 + 5 + 7 + 4
    assert parent == SESSION


@pytest.mark.slow
def test_importing_any_part_and_then_the_whole_equals_importing_at_once(
    project: Project, whole: list[Any], cuts: list[int]
) -> None:
    for cut in cuts:
        take(project, LINES[:cut])
        take(project, LINES)
        assert rows(project) == whole, f"cut after line {cut}"
        project.agent_sessions.all().delete()


@pytest.mark.slow
def test_importing_in_several_parts_equals_importing_at_once(
    project: Project, whole: list[Any], cuts: list[int]
) -> None:
    choice = random.Random(7)
    for _ in range(5):
        way = sorted(choice.sample(cuts, choice.randint(2, 5)))
        for cut in [*way, len(LINES)]:
            take(project, LINES[:cut])
        assert rows(project) == whole, f"cut after lines {way}"
        project.agent_sessions.all().delete()


@pytest.mark.slow
def test_a_partially_written_line_is_imported_later(
    project: Project, whole: list[Any], cuts: list[int]
) -> None:
    for cut in cuts:
        half = orjson.dumps(LINES[cut])
        take(project, LINES[:cut], tail=half[: len(half) // 2])
    take(project, LINES)
    assert rows(project) == whole


@pytest.mark.slow
def test_importing_the_same_or_an_older_state_changes_nothing(
    project: Project, whole: list[Any], cuts: list[int]
) -> None:
    take(project, LINES)
    revisions = list(project.agent_sessions.values_list("edits_revision", flat=True))
    for cut in [len(LINES), *reversed(cuts)]:
        try:
            results = take(project, LINES[:cut])
        except ImportConflictError:
            assert cut < len(LINES) - 2  # cut within an earlier answer
            continue
        assert not any(result.changed for result in results), f"cut after line {cut}"
    assert [row[2:] for row in rows(project)] == [row[2:] for row in whole]
    assert list(project.agent_sessions.values_list("edits_revision", flat=True)) == revisions


def test_the_etag_changes_with_the_last_answer(project: Project) -> None:
    take(project, LINES[:4])
    before = AgentSession.objects.get(project=project)
    (result,) = take(project, LINES[:6])
    assert (result.changed, result.turns_added, result.messages_added) == (True, 0, 0)
    assert result.session.edits_revision == before.edits_revision + 1


@pytest.mark.slow
def test_estimated_output_tokens_grow_with_the_answer(project: Project, other_project: Project) -> None:
    """The log's ids of requests are no sign that telemetry has reported the exact output tokens."""
    log = [
        user("Explain it", "u1"),
        block("m1", text("First, the parser. " * 4), "a1", requestId="req_1"),
        block("m1", text("Then, the compiler. " * 90), "a2", requestId="req_1"),
        user("Go on", "u2"),
        block("m2", text("Last, the linker."), "a3", requestId="req_2"),
    ]
    for cut in range(2, len(log) + 1):
        take(project, log[:cut])
    take(other_project, log)
    assert rows(project) == rows(other_project)
    first = project.agent_sessions.get().turns.get(index=0)
    assert first.output_reported == 1
    assert (first.output_tokens or 0) > 300


def test_pins_are_kept_when_the_last_turns_are_replaced(project: Project) -> None:
    take(project, LINES[:10])
    session = project.agent_sessions.get()
    pinned = session.messages.get(source_id="u2")
    for position in (0, pinned.position):
        message_pin(session=session, position=position, pinned=True)
    take(project, LINES)
    found = project.agent_sessions.get(external_id=SESSION)
    flagged = found.messages.filter(flags__gte=MessageFlag.PINNED)
    positions = [row.position for row in flagged if row.flags & MessageFlag.PINNED]
    assert positions == list(found.pins.order_by("position").values_list("position", flat=True))
    assert positions == [0, found.messages.get(source_id="u2").position]


def test_another_story_is_a_conflict(project: Project, whole: list[Any]) -> None:
    take(project, LINES)
    other = [LINES[0], LINES[1], user("Something else", "u1"), *LINES[3:]]
    with pytest.raises(ImportConflictError, match="from message 1 on"):
        take(project, other)
    assert rows(project) == whole


def test_a_fork_is_billed_once(project: Project) -> None:
    take(project, LINES)
    spent = AgentSession.objects.get(project=project, external_id=SESSION).cost_microusd
    copy = fork_take(project, LINES)
    assert spent > 0
    assert (copy.cost_microusd, copy.output_tokens) == (0, 0)


def test_the_sums_of_a_fork_are_those_of_its_turns_after_the_original_is_deleted(project: Project) -> None:
    take(project, LINES)
    fork_take(project, LINES[:-4])
    session_delete(session=project.agent_sessions.get(external_id=SESSION))
    copy = fork_take(project, LINES)
    turns = copy.turns.filter(billed=True)
    assert 0 < turns.count() < copy.turns.count()
    assert copy.output_tokens == sum(turn.output_tokens or 0 for turn in turns) > 0
    assert copy.cost_microusd == sum(turn.cost_microusd or 0 for turn in turns)


def test_a_fork_is_billed_once_if_its_log_is_read_with_other_response_ids(project: Project) -> None:
    take(project, LINES)
    fork_take(project, LINES[:-4])
    Turn.objects.update(response_id=Concat(Value("of an earlier version "), "response_id"))
    copy = fork_take(project, LINES)
    turns = copy.turns.filter(billed=True)
    assert 0 < turns.count() < copy.turns.count()
    assert copy.output_tokens == sum(turn.output_tokens or 0 for turn in turns)


def fork_take(project: Project, lines: Sequence[dict[str, Any]]) -> AgentSession:
    """Import the main session of the log under another id."""
    fork = jsonl(*(line | {"sessionId": "fork"} for line in lines if not line.get("isSidechain")))
    (imported,) = sessions_of(LogFile(name="fork.jsonl", data=fork.data))
    return session_import(project=project, imported=imported).session


def test_imports_of_projects_are_independent(project: Project) -> None:
    take(project, LINES)
    other = project_create(name="Gamma", slug="gamma")
    assert all(result.created for result in take(other, LINES))
