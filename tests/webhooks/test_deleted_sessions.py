"""Sessions that are deleted while a worker reports to webhooks."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from accounts.models import Project
from sessions.models import AgentSession, Compaction, Webhook, WebhookDelivery, WebhookFormat
from sessions.services.compactions.background import compaction_claim
from sessions.services.compactions.triggers import compaction_request
from sessions.services.sessions.lifecycle import session_delete
from sessions.services.webhooks.deliveries import event_emit
from tests.locking import blocking
from tests.pages.transcripts import make_session, reading_turn
from tests.webhooks.test_webhooks import URL


@pytest.mark.django_db(transaction=True)
def test_a_session_can_be_deleted_while_its_compaction_starts(project: Project, settings: Any) -> None:
    settings.CONTEXTAPP_ANTHROPIC_API_KEY = "key of the tests"
    Webhook.objects.create(project=project, url=URL, secret="s", events=["compaction.started"])
    session = make_session(project, [reading_turn(0, "words")])
    pending = compaction_request(session=session, reason="")
    with blocking(partial(session_delete, session=session)) as jobs:
        assert compaction_claim(compaction_id=pending.pk) is not None
        assert WebhookDelivery.objects.exists()
    jobs[0].result()
    assert not AgentSession.objects.exists()
    assert not WebhookDelivery.objects.exists()
    assert compaction_claim(compaction_id=pending.pk) is None
    assert not Compaction.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("format", WebhookFormat.values)
def test_pending_reports_about_a_session_are_deleted_with_it(
    project: Project, format: str, settings: Any
) -> None:
    settings.CONTEXTAPP_PUBLIC_URL = "https://ctx.example.org"
    events = ["tool_output.spike"]
    Webhook.objects.create(project=project, url=URL, secret="s", events=events, format=format)
    deleted, kept = (make_session(project, [reading_turn(0, "words")], name=name) for name in ("a", "b"))
    for session in (deleted, kept):
        payload = {
            "session": {"id": session.pk, "external_id": session.external_id},
            "turn": 0,
            "output_spike": {"tokens": 90_000, "mean": 1_200, "position": 3, "tool": "Bash"},
        }
        event_emit(project_id=project.pk, event="tool_output.spike", payload=payload)
    session_delete(session=deleted)
    [left] = WebhookDelivery.objects.all()
    assert str(kept.pk) in bytes(left.body).decode()
