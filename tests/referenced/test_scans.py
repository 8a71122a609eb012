"""Scheduled scans find references to removed content in live sessions."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Project
from compaction.policy import Policy
from compaction.referenced import ReferenceTracker
from importers.base import ImportedTurn
from sessions.models import AgentSession, Edit, Message, ReferenceScan
from sessions.selectors.compactions.reference_rates import (
    edits_of_project,
    edits_of_session,
    later_references,
    rates_by_policy,
    rates_by_strategy,
    rates_by_tool,
)
from sessions.services.compactions import reference_scans
from sessions.services.compactions.apply import session_compact
from sessions.services.compactions.revert import compaction_revert
from sessions.store import bodies
from tests.api.statements import statements
from tests.locking import waiting_for
from tests.pages.transcripts import make_session, message, reading_turn, turn
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

NAME = "evict_idle_connections"
POLICY = Policy(name="small", steps=("drop_oldest",), tail_share=0.1)


def answer(index: int, text: str) -> ImportedTurn:
    result = {"type": "tool_result", "tool_use_id": f"call-{index - 1}", "content": "done"}
    said = [{"type": "text", "text": text}]
    return turn(index, [message("user", [result], f"u{index}"), message("assistant", said, f"a{index}")])


def grown(project: Project, *more: ImportedTurn) -> AgentSession:
    contents = {3: f"def {NAME}(): pass"}
    turns = [reading_turn(n, contents.get(n, f"plain words {n} ") * 60) for n in range(20)]
    return make_session(project, [*turns, *more], name="grown")


@reused
def compacted(project: Project) -> AgentSession:
    session = grown(project)
    AgentSession.objects.filter(pk=session.pk).update(budget_tokens=2_000)
    session.refresh_from_db()
    session_compact(session=session, trigger="user", policy=POLICY)
    return session


def scan(session: AgentSession) -> int:
    """Scan the session as if its pause were over."""
    ReferenceScan.objects.filter(pk=session.pk).update(lease_until=timezone.now())
    return reference_scans.session_references_scan(session_id=session.pk)


def tracker_of(session: AgentSession) -> ReferenceTracker:
    state = ReferenceScan.objects.get(pk=session.pk).state
    return ReferenceTracker.from_json(bodies.json_value(bodies.unpack(bytes(state))))


def test_hidden_identifiers_of_a_compaction_are_tracked(compacted: AgentSession) -> None:
    assert ReferenceScan.objects.filter(pk=compacted.pk).exists()
    assert reference_scans.reference_scans_run() == 0
    [edit] = Edit.objects.filter(session=compacted)
    tracker = tracker_of(compacted)
    assert tracker.names[NAME] == edit.pk
    assert edit.referenced_turn is None


def test_a_later_use_marks_the_edit(project: Project, compacted: AgentSession) -> None:
    grown(project, answer(20, f"As {NAME} does, we go on."))
    assert reference_scans.reference_scans_run() == 1
    [needed] = later_references(edits_of_session(compacted.pk))
    assert (needed.number, needed.turn, needed.text, needed.how) == (1, 20, NAME, "silent")
    assert needed.reaction == "ignored it"
    [rate] = rates_by_strategy(edits_of_project(project.pk))
    assert (rate.name, rate.edits, rate.silent, rate.share) == ("drop_oldest", 1, 1, 1.0)
    assert [rate.name for rate in rates_by_policy(edits_of_session(compacted.pk, compaction=1))] == ["small"]
    assert rates_by_tool(edits_of_session(compacted.pk)) == []


def test_collapsed_and_evicted_content_marks_the_eviction(project: Project) -> None:
    policy = Policy(name="both", steps=("collapse", "recap"), tail_share=0.1, collapse_tokens=50, target=0.2)
    session = grown(project)
    AgentSession.objects.filter(pk=session.pk).update(budget_tokens=2_000)
    session.refresh_from_db()
    session_compact(session=session, trigger="user", policy=policy)
    assert set(Edit.objects.values_list("strategy", "tool")) == {("collapse", "Read"), ("recap", "")}
    tools = rates_by_tool(edits_of_session(session.pk))
    assert [rate.name for rate in tools] == ["Read"]
    scan(session)
    tracker = tracker_of(session)
    recap = Edit.objects.get(strategy="recap")
    assert set(tracker.names.values()) <= {recap.pk, *collapses_in_force(recap)}
    assert not {h for h, key in tracker.handles.items() if key == recap.pk}


def collapses_in_force(recap: Edit) -> list[int]:
    return list(Edit.objects.filter(strategy="collapse", position__gt=recap.end).values_list("pk", flat=True))


@pytest.mark.slow
def test_pages_show_references(project: Project, compacted: AgentSession, viewer_client: Client) -> None:
    grown(project, answer(20, f"As {NAME} does."))
    scan(compacted)
    for address in ("replay/", "compactions/1/"):
        page = viewer_client.get(f"/p/alpha/sessions/{compacted.pk}/{address}").content.decode()
        assert NAME in page
        assert "ignored it" in page
    assert "drop_oldest" in viewer_client.get("/p/alpha/replay/rates/").content.decode()


@pytest.mark.slow
def test_long_sessions_are_scanned_in_parts(project: Project, compacted: AgentSession) -> None:
    more = [answer(20 + number, "Going on.") for number in range(reference_scans.MESSAGES)]
    grown(project, *more, answer(20 + len(more), f"As {NAME} does."))
    assert [scan(compacted) for _ in range(4)] == [0, 0, 1, 0]


def test_a_revert_removes_the_mark(project: Project, compacted: AgentSession) -> None:
    grown(project, answer(20, f"As {NAME} does."))
    scan(compacted)
    compaction_revert(session=compacted, number=1)
    assert scan(compacted) == 0
    assert not Edit.objects.filter(referenced_turn__isnull=False).exists()


@pytest.mark.slow
def test_quiet_sessions_are_scanned_less_often(compacted: AgentSession) -> None:
    pauses = []
    for _ in range(10):
        scan(compacted)
        pauses.append(ReferenceScan.objects.get(pk=compacted.pk).pause_seconds)
    assert pauses == sorted(pauses)
    assert pauses[-1] == reference_scans.LONGEST_PAUSE


def test_a_failed_scan_is_postponed(compacted: AgentSession) -> None:
    compacted.messages.filter(position=2).update(body=b"not json")
    assert reference_scans.reference_scans_run() == 0
    assert ReferenceScan.objects.get(pk=compacted.pk).lease_until > timezone.now() + timedelta(seconds=60)


def test_concurrent_scans_run_once(compacted: AgentSession) -> None:
    later = timezone.now() + reference_scans.LEASE
    ReferenceScan.objects.filter(pk=compacted.pk).update(lease_until=later)
    assert reference_scans.session_references_scan(session_id=compacted.pk) == 0
    assert ReferenceScan.objects.get(pk=compacted.pk).state is None


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_compaction_during_a_scan_is_scanned_next(compacted: AgentSession) -> None:
    with waiting_for(Message._meta.db_table, lambda: scan(compacted)):
        reference_scans.reference_scan_schedule(compacted.pk)
    row = ReferenceScan.objects.get(pk=compacted.pk)
    assert row.lease_until is None
    assert row.compaction == 1


def test_a_scan_takes_few_statements(project: Project, compacted: AgentSession) -> None:
    scan(compacted)
    grown(project, answer(20, "Going on."), answer(21, "Still."), answer(22, "Done."))
    reference_scans.reference_scan_schedule(compacted.pk)
    made = statements(reference_scans.reference_scans_run)
    # One claims the sessions of a pass, two scan this one, and one finds that no other is pending.
    assert len(made) == 4, made


def test_a_pass_scans_several_sessions(project: Project, compacted: AgentSession) -> None:
    other = make_session(project, [reading_turn(0, "plain words")], name="other")
    reference_scans.reference_scan_schedule(other.pk)
    reference_scans.reference_scans_run()
    assert list(ReferenceScan.objects.order_by("compaction").values_list("compaction", "position")) == [
        (0, other.message_count),
        (1, compacted.message_count),
    ]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_scan_that_was_overtaken_stores_nothing(project: Project, compacted: AgentSession) -> None:
    """The compaction is reverted during a slow scan, and another worker removes what it hid."""
    with waiting_for(Message._meta.db_table, lambda: scan(compacted)):
        compaction_revert(session=compacted, number=1)
        scan(compacted)
    assert NAME not in tracker_of(compacted).names
    grown(project, answer(20, f"As {NAME} does."))
    assert scan(compacted) == 0
