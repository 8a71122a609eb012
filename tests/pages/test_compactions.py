"""The list of a session's compactions: all members see it, members with write access compact and revert."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Page, expect

from sessions.models import AgentSession, Compaction
from sessions.selectors.token_budgets import calibration_of
from sessions.services.compactions.planning import preview_plan
from tests.locking import blocking
from tests.markup import one_line
from tests.pages.served import address
from tests.pages.transcripts import make_session, reading_turn
from tests.plugins.reused import reused

HTMX = {"HX-Request": "true"}


@reused
def session(project: Any) -> AgentSession:
    """An idle session with many tool outputs that can be compacted."""
    turns = [reading_turn(n, f"{n}: " + "a line of a file\n" * 300) for n in range(12)]
    made = make_session(project, turns)
    made.budget_tokens, made.policy = 20_000, {"soft": 0, "hard": 0, "tail_share": 0.05}
    made.last_active_at = timezone.now() - timedelta(hours=1)
    made.save()
    return made


def copy_of(row: Compaction, *, number: int) -> Compaction:
    """Store a later compaction with the same edits."""
    edits = list(row.edits.order_by("ordinal"))
    row = Compaction.objects.get(pk=row.pk)
    row.pk, row.number = uuid4(), number
    row.save(force_insert=True)
    for edit in edits:
        edit.pk, edit.compaction = None, row
        edit.save()
    return row


@pytest.mark.django_db
class TestTheList:
    def test_a_compaction_is_requested_listed_and_reverted(
        self, member_client: Client, session: AgentSession
    ) -> None:
        sent = {"instructions": "keep the paths"}
        shown = member_client.post(address("session_compact", session), sent, headers=HTMX).text
        row = Compaction.objects.get()
        assert (row.state, row.instructions, row.trigger) == ("done", "keep the paths", "user")
        assert "<html" not in shown
        assert f'title="{row.tokens_before:,} tokens"' in shown
        assert f'title="{row.tokens_after:,} tokens"' in shown
        for name in ("head_tokens", "middle_tokens", "tail_tokens"):
            assert f'title="{row.record[name]:,} tokens"' in shown
        shown = member_client.post(address("session_revert", session, 1), headers=HTMX).text
        assert "state-reverted" in shown
        assert "Not reverted" in member_client.post(address("session_revert", session, 1), headers=HTMX).text

    @pytest.mark.slow
    def test_a_revert_says_what_it_does_to_the_next_prompt(
        self, member_client: Client, session: AgentSession
    ) -> None:
        member_client.post(address("session_compact", session))
        AgentSession.objects.update(budget_tokens=10_000)
        page = member_client.get(address("session_revert", session, 1))
        row, preview = Compaction.objects.get(), page.context["preview"]
        assert preview.has_effect
        assert not preview.fits
        assert preview.after > preview.before
        assert "exceeds the budget" in page.text
        assert row.state == "done"
        member_client.post(address("session_revert", session, 1))
        shown = AgentSession.objects.get(pk=session.pk)
        calibration = calibration_of(shown.calibration, model=shown.model)
        assert calibration.provider(sum(shown.shown_components.values())) == preview.after
        assert member_client.get(address("session_revert", session, 1)).status_code == 404

    def test_a_revert_without_effect_says_so(self, member_client: Client, session: AgentSession) -> None:
        member_client.post(address("session_compact", session))
        first = Compaction.objects.get()
        [again] = [copy_of(first, number=2)]
        assert again.edits.count() == first.edits.count()
        page = member_client.get(address("session_revert", session, 1))
        assert not page.context["preview"].has_effect
        assert "changes nothing" in page.text
        assert "<button" not in page.text.split("changes nothing")[1].split("</div>")[0]

    @pytest.mark.slow
    def test_a_reverted_compaction_is_applied_again(
        self, member_client: Client, session: AgentSession
    ) -> None:
        member_client.post(address("session_compact", session))
        compacted = AgentSession.objects.get(pk=session.pk).shown_components
        member_client.post(address("session_revert", session, 1))
        shown = member_client.post(address("session_reapply", session, 1), headers=HTMX).text
        assert 'data-compaction="2"' in shown
        assert AgentSession.objects.get(pk=session.pk).shown_components == compacted
        assert Compaction.objects.get(number=2).reason == "applies compaction 1 again"
        for number in (1, 2):
            answer = member_client.post(address("session_reapply", session, number), headers=HTMX).text
            assert "Not applied" in answer

    @pytest.mark.slow
    def test_nothing_is_applied_again_while_a_compaction_is_open(
        self, member_client: Client, session: AgentSession
    ) -> None:
        member_client.post(address("session_compact", session))
        member_client.post(address("session_revert", session, 1))
        again = copy_of(Compaction.objects.get(), number=2)
        reapply = address("session_reapply", session, 1)
        for state in Compaction.OPEN:
            Compaction.objects.filter(pk=again.pk).update(state=state)
            assert "already in progress" in member_client.post(reapply, headers=HTMX).text
        assert set(Compaction.objects.values_list("number", flat=True)) == {1, 2}
        Compaction.objects.filter(pk=again.pk).update(state="skipped")
        member_client.post(reapply)
        assert Compaction.objects.get(number=3).state == "done"

    @pytest.mark.slow
    @pytest.mark.django_db(transaction=True)
    def test_of_concurrent_requests_to_apply_it_again_one_succeeds(
        self, member_client: Client, session: AgentSession
    ) -> None:
        member_client.post(address("session_compact", session))
        member_client.post(address("session_revert", session, 1))
        reapply = partial(member_client.post, address("session_reapply", session, 1), headers=HTMX)
        with blocking(reapply, reapply) as jobs:
            AgentSession.objects.select_for_update().get(pk=session.pk)
        assert sum("Not applied" in job.result().text for job in jobs) == 1
        assert list(Compaction.objects.order_by("number").values_list("state", flat=True)) == [
            "reverted",
            "done",
        ]

    def test_without_htmx_it_redirects_to_the_page(
        self, member_client: Client, session: AgentSession
    ) -> None:
        response = member_client.post(address("session_compact", session))
        assert response.url == address("session_compactions", session)  # type: ignore[attr-defined]
        assert "<html" in member_client.get(address("session_compactions", session)).text

    @pytest.mark.slow
    def test_it_polls_only_while_a_compaction_is_open(
        self, member_client: Client, session: AgentSession
    ) -> None:
        def polls() -> bool:
            return "every 3s" in member_client.get(address("session_compactions", session), headers=HTMX).text

        assert not polls()
        member_client.post(address("session_compact", session))
        assert polls()
        Compaction.objects.update(finished_at=timezone.now() - timedelta(minutes=2))
        assert not polls()
        Compaction.objects.update(state="running")
        assert polls()

    def test_a_second_concurrent_compaction_is_rejected(
        self, member_client: Client, session: AgentSession
    ) -> None:
        member_client.post(address("session_compact", session))
        Compaction.objects.update(state="running")
        shown = member_client.post(address("session_compact", session), headers=HTMX).text
        assert "already in progress" in shown
        assert Compaction.objects.count() == 1

    def test_a_preview_uses_the_prices_of_the_model(
        self, viewer_client: Client, session: AgentSession
    ) -> None:
        turns = []
        for model in ("claude-sonnet-4-5", "claude-opus-5-5"):
            AgentSession.objects.update(model=model)
            shown = viewer_client.get(address("session_compact_preview", session), headers=HTMX)
            turns.append(shown.context["record"].break_even_turns)
        # (w - r) / r is 11.5 for cache reads at a tenth of the input price, and 24 at a twentieth.
        assert turns[1] / turns[0] == pytest.approx(24 / 11.5, rel=0.05)

    def test_a_preview_writes_nothing(self, viewer_client: Client, session: AgentSession) -> None:
        shown = one_line(viewer_client.get(address("session_compact_preview", session), headers=HTMX))
        assert "Breaks even after" in shown
        # No call has read the last answer and its results yet, so they have no discount.
        record = preview_plan(session).record
        assert record.tokens_new > 0
        assert f'title="{record.tokens_rebilled - record.tokens_new:,} tokens"' in shown
        assert not Compaction.objects.exists()

    @pytest.mark.slow
    def test_the_policy_is_shown_and_changed(self, member_client: Client, session: AgentSession) -> None:
        page = address("session_compactions", session)
        assert "with tail_share 0.05, soft 0, hard 0" in one_line(member_client.get(page))
        changed = member_client.post(address("session_policy", session), {"preset": "masking"}, follow=True)
        assert "Policy changed to masking." in changed.text
        session.refresh_from_db()
        assert session.policy == {"preset": "masking"}
        assert "custom settings" not in member_client.get(page).text
        refused = member_client.post(address("session_policy", session), {"preset": "tiny"}, follow=True)
        assert "Choose one of the policies." in refused.text

    @pytest.mark.slow
    def test_the_records_are_downloaded(self, member_client: Client, session: AgentSession) -> None:
        page = address("session_compactions", session)
        export = address("session_compactions_export", session)
        assert export not in member_client.get(page).text
        member_client.post(address("session_compact", session))
        assert export in member_client.get(page).text
        response = member_client.get(export)
        assert response["Content-Disposition"] == f'attachment; filename="compactions-{session.pk}.jsonl"'
        [line] = response.getvalue().splitlines()
        assert json.loads(line)["tokens_before"] == Compaction.objects.get().tokens_before

    def test_a_viewer_sees_the_policy_only(self, viewer_client: Client, session: AgentSession) -> None:
        shown = viewer_client.get(address("session_compactions", session)).text
        assert "tail_share 0.05" in shown
        assert "Change policy" not in shown
        assert "Compact now" not in shown


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_a_new_compaction_appears_on_the_page(page_as: Any, member: Any, session: AgentSession) -> None:
    page: Page = page_as(member)
    AgentSession.objects.update(last_active_at=timezone.now())
    page.goto(address("session_compactions", session))
    expect(page.get_by_text("No compactions by contextapp yet.")).to_be_visible()
    page.get_by_role("link", name="Preview").click()
    expect(page.locator("#compact-preview")).to_contain_text("Breaks even after")
    # Another process starts a compaction: the page shows it and its end without a reload.
    row = Compaction.objects.create(
        session=session, number=1, state="running", trigger="soft", turn_index=11, snapshot_position=24
    )
    state = page.locator('[data-compaction="1"] .tag')
    expect(state).to_have_text("running")
    Compaction.objects.filter(pk=row.pk).update(state="skipped", reason="no gain", finished_at=timezone.now())
    expect(state).to_have_text("skipped")
    page.get_by_role("button", name="Compact now").click()
    expect(page.locator('[data-compaction="2"] .tag')).to_have_text("done")
    tab = page.get_by_role("navigation", name="Session").get_by_role("link", name="Compactions")
    expect(tab).to_have_text("Compactions 1", use_inner_text=True)
    page.get_by_role("link", name="Revert… compaction 2").click()
    expect(page.locator("#compact-preview")).to_contain_text("changes the next prompt from")
    page.get_by_role("button", name="Revert compaction 2").click()
    expect(page.locator('[data-compaction="2"] .tag')).to_have_text("reverted")
    expect(page.locator("#compact-preview")).to_be_empty()
    page.get_by_role("button", name="Apply again compaction 2").click()
    expect(page.locator('[data-compaction="3"] .tag')).to_have_text("done")
    expect(tab).to_have_text("Compactions 2", use_inner_text=True)
