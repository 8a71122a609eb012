"""Changes of single items on the memory page."""

# ruff: noqa: F811  # the fixture of another module

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from compaction.memory.origins import Author, Via
from sessions.models import AgentSession, MemoryRevision
from sessions.selectors.memory.revisions import memory_latest, memory_notes
from tests.memory.test_pages import (  # noqa: F401  # a fixture
    DIFF,
    address,
    change,
    forms_with_operation,
    memory,
    stored,
    write,
)

pytestmark = pytest.mark.django_db


class TestManualChanges:
    @pytest.mark.slow
    def test_add_reword_resolve_and_remove(self, owner_client: Client, stored: Any) -> None:
        change(owner_client, stored, op="add", field="open_questions", item="in CI too?", reason="asked")
        change(
            owner_client,
            stored,
            op="replace",
            field="decisions",
            item="use the clock",
            **{"with": "no clock"},
        )
        change(owner_client, stored, op="resolve", field="open_questions", item="in CI too?")
        change(owner_client, stored, op="remove", field="decisions", item="evict <b>early</b>")
        assert memory(stored).decisions == ("no clock",)
        last = MemoryRevision.objects.order_by("-number").first()
        assert (last.author, last.number) == ("person", 6)
        origin = memory_notes(last).origin("decisions", "no clock")
        assert (origin.author, origin.via) == (Author.PERSON, Via.PAGE)

    def test_an_item_with_several_lines_is_matched(self, owner_client: Client, stored: Any) -> None:
        change(owner_client, stored, op="remove", field="recent_edits", item=DIFF.replace("\n", "\r\n"))
        assert memory(stored).recent_edits == ()

    @pytest.mark.slow
    def test_a_stale_item_is_confirmed(self, owner_client: Client, marked: AgentSession) -> None:
        page = owner_client.get(address("session_memory", marked)).content.decode()
        assert "Stale: unittest has been in use since turn 0" in page
        [form] = forms_with_operation(page, "confirm")
        after = change(owner_client, marked, **form).content.decode()
        assert "Stale: " not in after
        assert "confirmed: tests run with pytest" in after
        last = memory_latest(session_id=marked.pk)
        assert (last.author, last.reason) == (
            "person",
            "Confirmed as still true; it was marked as stale: unittest has been in use since turn 0",
        )
        origin = memory_notes(last).origin("decisions", "tests run with pytest")
        assert (origin.author, origin.stale) == (Author.MODEL, "")
        change(owner_client, marked, **form)
        assert memory_latest(session_id=marked.pk).number == last.number

    def test_an_invalid_change_is_reported(self, owner_client: Client, stored: Any) -> None:
        response = change(owner_client, stored, op="remove", field="decisions", item="not there")
        assert "The change was not saved: no item" in response.text

    def test_the_text_of_a_rejected_change_is_shown_in_the_form(
        self, owner_client: Client, stored: Any
    ) -> None:
        """For example, another user has removed the item meanwhile."""
        form = {"op": "replace", "field": "decisions", "item": "not there", "with": "no clock"}
        response = change(owner_client, stored, **form)
        assert response.status_code == 422
        assert "The change was not saved: no item" in response.text
        assert "autofocus>\nno clock</textarea>" in response.text

    def test_a_text_as_long_as_a_memory_can_be_is_not_cut_off(
        self, owner_client: Client, stored: Any
    ) -> None:
        write(stored, task="documentation " * 320)
        old = memory(stored).task
        page = change(owner_client, stored, op="replace", field="task", item=old, **{"with": f"{old} end"})
        assert "Memory updated." in page.text
        assert memory(stored).task == f"{old} end"

    def test_viewers_are_offered_no_change(self, viewer_client: Client, stored: Any) -> None:
        assert b"Add an item" not in viewer_client.get(address("session_memory", stored)).content

    def test_a_secret_is_redacted(self, owner_client: Client, stored: Any) -> None:
        change(owner_client, stored, op="add", field="decisions", item="use ghp_" + "a1B2" * 9)
        assert "[redacted:" in memory(stored).decisions[-1]
