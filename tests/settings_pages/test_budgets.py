"""Cost budgets: spending per period and alerts by email, webhook and page."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from functools import partial
from smtplib import SMTPAuthenticationError, SMTPConnectError, SMTPRecipientsRefused
from threading import Event
from zoneinfo import ZoneInfo

import pytest
from django.core import mail
from django.core.mail import send_mail
from django.db import OperationalError, connection
from django.urls import reverse

from sessions.models import BudgetAlert, CostBudget, WebhookDelivery
from sessions.selectors.spending import budget_spent, budgets_spent, period_of
from sessions.services.spending.cost_budgets import alert_emails_send, budget_set, cost_budgets_check
from sessions.services.spending.rollups import rollups_fill
from sessions.services.webhooks.subscriptions import webhook_create
from tests.locking import blocking, in_thread
from tests.trends.turns import session_make, turn_make, turns_add

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


@pytest.fixture
def spend(project):
    """Return a function that spends dollars, by default now."""
    session = session_make(project, "s")

    def of(dollars: float, at: datetime = NOW) -> None:
        turns_add(session, [turn_make(session, session.turn_count, at, cost=int(dollars * 1_000_000))])
        rollups_fill()

    return of


@pytest.fixture
def budget(project, settings):
    settings.EMAIL_HOST = "mail.example.org"
    return budget_set(project=project, period="month", limit_microusd=10_000_000, emails=["lead@example.org"])


@pytest.mark.parametrize(
    ("period", "first", "last"),
    [
        ("day", date(2026, 3, 11), date(2026, 3, 11)),
        ("week", date(2026, 3, 9), date(2026, 3, 15)),
        ("month", date(2026, 3, 1), date(2026, 3, 31)),
    ],
)
def test_periods_follow_the_time_zone(period, first, last):
    span = period_of(period, date(2026, 3, 11), ZoneInfo("Asia/Tokyo"))
    assert (span.first, span.last) == (first, last)


def test_december_ends_with_the_year():
    assert period_of("month", date(2026, 12, 5), ZoneInfo("UTC")).last == date(2026, 12, 31)


def test_a_period_starts_in_the_time_zone_of_the_budget(project, spend):
    spend(3, datetime(2026, 3, 9, 16, 0, tzinfo=UTC))
    tokyo = budget_set(project=project, period="day", limit_microusd=10**7, time_zone="Asia/Tokyo")
    assert budget_spent(tokyo, now=NOW).microusd == 3_000_000
    utc = budget_set(project=project, period="day", limit_microusd=10**7)
    assert budget_spent(utc, now=NOW).microusd == 0


@pytest.mark.slow
def test_each_share_is_reported_once(budget, spend):
    spend(4.99)
    assert cost_budgets_check(now=NOW) == 0
    for dollars, share in ((0.01, 50), (3, 80), (2, 100)):
        spend(dollars)
        assert cost_budgets_check(now=NOW) == 1
        assert cost_budgets_check(now=NOW) == 0
        assert mail.outbox[-1].subject == f"Alpha: {share}% of the monthly budget reached"
    spend(50)
    assert cost_budgets_check(now=NOW) == 0
    assert len(mail.outbox) == 3
    assert mail.outbox[0].to == ["lead@example.org"]


def test_only_the_largest_of_several_reached_shares_is_reported(budget, spend):
    spend(8.5)
    assert cost_budgets_check(now=NOW) == 1
    assert "80%" in mail.outbox[0].subject
    assert set(BudgetAlert.objects.values_list("share", flat=True)) == {50, 80}


def test_shares_of_a_raised_limit_are_reported(project, budget, spend, settings, viewer_client):
    settings.CONTEXTAPP_PUBLIC_URL = "https://ctx.example.org"
    spend(10)
    assert cost_budgets_check(now=NOW) == 1
    changed = {"project": project, "period": "month", "emails": ["lead@example.org"]}
    budget_set(limit_microusd=16_000_000, **changed)
    assert cost_budgets_check(now=NOW) == 1
    assert "limit: $10.00 → $16.00" in viewer_client.get(address("settings_audit")).text
    assert "50%" in mail.outbox[-1].subject
    assert "$10.00 of its monthly budget of $16.00" in mail.outbox[-1].body
    assert "https://ctx.example.org/p/alpha/trends/" in mail.outbox[-1].body
    spend(3)
    assert cost_budgets_check(now=NOW) == 1
    assert "80%" in mail.outbox[-1].subject
    budget_set(limit_microusd=10_000_000, **changed)
    assert cost_budgets_check(now=NOW) == 0


def test_the_next_period_is_reported_again(budget, spend):
    spend(6)
    cost_budgets_check(now=NOW)
    april = NOW + timedelta(days=30)
    assert cost_budgets_check(now=april) == 0
    spend(6, april)
    assert cost_budgets_check(now=april) == 1


def test_subscribed_webhooks_are_notified(project, budget, spend):
    webhook_create(project=project, url="https://example.org/a", events=["budget.reached"])
    webhook_create(project=project, url="https://example.org/b", events=["compaction.started"])
    spend(5)
    cost_budgets_check(now=NOW)
    delivery = WebhookDelivery.objects.get()
    payload = json.loads(bytes(delivery.body))
    assert delivery.webhook.url == "https://example.org/a"
    assert (payload["event"], payload["budget"]["share_percent"]) == ("budget.reached", 50)
    assert payload["budget"]["spent_microusd"] == 5_000_000


@pytest.mark.parametrize(
    ("error", "sent"),
    [
        (ConnectionRefusedError(), 1),
        (SMTPConnectError(421, b"too many connections"), 1),
        (SMTPAuthenticationError(535, b"password expired"), 1),
        (SMTPRecipientsRefused({"lead@example.org": (550, b"unknown")}), 0),
    ],
)
def test_an_email_is_retried_until_the_server_works_unless_it_is_rejected(
    budget, spend, monkeypatch, error, sent
):
    def broken(*args, **kwargs):
        raise error

    spend(5)
    with monkeypatch.context() as patched:
        patched.setattr("sessions.services.spending.cost_budgets.send_mail", broken)
        cost_budgets_check(now=NOW)
        assert [alert_emails_send() for _ in range(10)] == [0] * 10
    assert mail.outbox == []
    assert alert_emails_send() == sent
    assert alert_emails_send() == 0


def test_names_with_newlines_are_one_line_of_the_subject(budget, project, spend):
    project.name = "Alpha\r\n\nBeta"
    project.save()
    spend(5)
    cost_budgets_check(now=NOW)
    assert [message.subject for message in mail.outbox] == ["Alpha Beta: 50% of the monthly budget reached"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_concurrent_checks_send_one_email(budget, spend):
    spend(5)
    with blocking(*[partial(cost_budgets_check, now=NOW)] * 4) as jobs:
        CostBudget.objects.select_for_update().get()
    assert sorted(job.result() for job in jobs) == [0, 0, 0, 1]
    assert len(mail.outbox) == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_email_that_is_being_sent_is_not_sent_by_another_run(budget, spend, monkeypatch):
    spend(5)
    sending, others_ended = Event(), Event()

    def slow(*args, **kwargs):
        sending.set()
        assert others_ended.wait(60)
        return send_mail(*args, **kwargs)

    monkeypatch.setattr("sessions.services.spending.cost_budgets.send_mail", slow)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(in_thread, partial(cost_budgets_check, now=NOW))
        assert sending.wait(60)
        assert alert_emails_send() == 0
        others_ended.set()
        first.result()
    assert len(mail.outbox) == 1
    assert alert_emails_send() == 0


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_email_is_sent_after_the_connection_of_its_worker_was_lost(budget, spend, monkeypatch):
    """Postgres sees the same if the worker is killed."""

    def broken(*args, **kwargs):
        connection.cursor().execute("SELECT pg_terminate_backend(pg_backend_pid())")

    spend(5)
    monkeypatch.setattr("sessions.services.spending.cost_budgets.send_mail", broken)
    with ThreadPoolExecutor(1) as pool, pytest.raises(OperationalError):
        pool.submit(in_thread, partial(cost_budgets_check, now=NOW)).result()
    monkeypatch.undo()
    assert alert_emails_send() == 1
    assert mail.outbox[0].to == ["lead@example.org"]


@pytest.mark.slow
def test_a_silent_mail_server_delays_a_run_once_and_loses_no_email(budget, project, spend, settings):
    budget_set(project=project, period="week", limit_microusd=10_000_000, emails=["lead@example.org"])
    spend(5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = silent.getsockname()
        settings.EMAIL_TIMEOUT = 0.02
        cost_budgets_check(now=NOW)
        silent.accept()
        with pytest.raises(BlockingIOError):
            silent.accept()
        assert [alert_emails_send() for _ in range(10)] == [0] * 10
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    assert alert_emails_send() == 2


@pytest.mark.slow
def test_a_budget_covers_an_agent_a_model_a_tag_or_a_member(project, member, owner, settings):
    settings.EMAIL_HOST = "mail.example.org"
    session = session_make(project, "s", agent="reader", tags=["nightly"], created_by=member)
    other = session_make(project, "t", agent="writer", created_by=owner)
    for each, dollars in ((session, 6), (other, 3)):
        turns_add(each, [turn_make(each, 0, NOW, cost=dollars * 1_000_000, model=f"model-{each.agent}")])
    rollups_fill()
    covered = {"agent": "reader", "model": "model-reader", "tag": "nightly", "member": str(member.pk)}
    for scope, value in covered.items():
        budget_set(
            project=project,
            period="month",
            limit_microusd=10**7,
            scope=scope,
            scope_value=value,
            emails=["a@b.org"],
        )
    assert [spent.microusd for spent in budgets_spent(project_id=project.pk, now=NOW)] == [6_000_000] * 4
    assert cost_budgets_check(now=NOW) == 4
    subjects = {message.subject for message in mail.outbox}
    assert "Alpha: 50% of the monthly budget for agent reader reached" in subjects
    assert f"Alpha: 50% of the monthly budget for member {member.username} reached" in subjects


def test_spending_of_other_projects_does_not_count(budget, other_project):
    session = session_make(other_project, "theirs")
    turns_add(session, [turn_make(session, 0, NOW, cost=10**9)])
    rollups_fill()
    assert cost_budgets_check(now=NOW) == 0


# -- Page ------------------------------------------------------------------------------------------


def address(name: str = "settings_budgets", *args: object) -> str:
    return reverse(name, args=["alpha", *args])


FORM = {"period": "week", "dollars": "12.50", "time_zone": "Europe/Berlin", "emails": "a@b.org, c@d.org"}


@pytest.mark.slow
def test_owners_set_and_remove_budgets(owner_client):
    assert owner_client.post(address(), FORM).status_code == 302
    budget = CostBudget.objects.get()
    assert (budget.limit_microusd, budget.emails) == (12_500_000, ["a@b.org", "c@d.org"])
    owner_client.post(address(), {**FORM, "dollars": "20"})
    assert CostBudget.objects.get().limit_microusd == 20_000_000
    assert owner_client.post(address("settings_budget_delete", budget.pk)).status_code == 302
    assert owner_client.post(address("settings_budget_delete", budget.pk)).status_code == 404


@pytest.mark.slow
def test_the_form_offers_what_a_budget_can_cover(owner_client, project):
    session_make(project, "s", agent="reader", tags=["nightly"])
    assert 'value="agent:reader"' in owner_client.get(address()).text
    for _ in range(2):
        assert owner_client.post(address(), {**FORM, "scope": "tag:nightly"}).status_code == 302
    assert owner_client.post(address(), {**FORM, "scope": "agent:reader"}).status_code == 302
    assert owner_client.post(address(), {**FORM, "scope": "agent:unknown"}).status_code == 422
    page = owner_client.get(address()).text
    assert CostBudget.objects.count() == 2
    assert '<span class="tag">agent reader</span>' in page
    assert '<span class="tag">tag nightly</span>' in page


@pytest.mark.parametrize(
    "wrong", [{"dollars": "0"}, {"dollars": "x"}, {"time_zone": "Mars/North"}, {"emails": "nobody"}]
)
def test_invalid_values_are_rejected(owner_client, wrong):
    assert owner_client.post(address(), {**FORM, **wrong}).status_code == 422
    assert not CostBudget.objects.exists()


def test_trends_show_the_share_of_a_budget_that_is_spent(budget, project, viewer_client):
    session = session_make(project, "s")
    turns_add(session, [turn_make(session, 0, datetime.now(UTC), cost=8_400_000)])
    rollups_fill()
    response = viewer_client.get(reverse("trends", args=["alpha"]))
    assert b"over 80%" in response.content
    assert b"84%" in viewer_client.get(address()).content
