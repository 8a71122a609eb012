"""Cost budgets and their alerts. Each alert share is reported once per period."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from smtplib import SMTPDataError, SMTPRecipientsRefused, SMTPSenderRefused
from typing import Any

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import F
from django.urls import reverse
from django.utils.formats import date_format

from accounts.actors import SYSTEM, Actor
from accounts.models import Project
from accounts.services.audit import audit_record
from sessions.models import BudgetAlert, CostBudget, WebhookEvent
from sessions.models.spending import BudgetScope
from sessions.selectors.spending import (
    ADJECTIVES,
    ALERT_PERCENTAGES,
    BudgetSpending,
    budget_spent,
    scope_of,
)
from sessions.services.webhooks.deliveries import event_emit

#: Maximum number of budgets of a project: each is checked every minute.
MOST_BUDGETS = 50


class TooManyBudgets(Exception):
    """The project has `MOST_BUDGETS` budgets already."""


log = logging.getLogger(__name__)

#: Attempts to send one email, one per run of the scheduled task, if the mail server rejects it.
_MAIL_ATTEMPTS = 10

#: Errors that concern one email. After all others, the next email would fail too: the server is down or busy,
#: or does not accept the password.
_REJECTIONS = (SMTPSenderRefused, SMTPRecipientsRefused, SMTPDataError)


@transaction.atomic
def budget_set(
    *,
    project: Project,
    period: str,
    limit_microusd: int,
    scope: str = BudgetScope.PROJECT,
    scope_value: str = "",
    time_zone: str = "UTC",
    emails: Sequence[str] = (),
    actor: Actor = SYSTEM,
) -> CostBudget:
    """Create or change the budget of a period, for the project or an agent, model, tag or member of it.

    Alerts already sent in the current period for the same limit are not repeated. Raises `TooManyBudgets`.
    """
    key: dict[str, Any] = {"project": project, "period": period, "scope": scope, "scope_value": scope_value}
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    before = CostBudget.objects.filter(**key).first()
    if before is None and project.cost_budgets.count() >= MOST_BUDGETS:
        raise TooManyBudgets
    values = {"limit_microusd": limit_microusd, "time_zone": time_zone, "emails": list(emails)}
    budget, _ = CostBudget.objects.update_or_create(**key, defaults=values)
    detail = {
        name: value
        if before is None or getattr(before, name) == value
        else {"from": getattr(before, name), "to": value}
        for name, value in values.items()
    }
    audit_record(action="budget.set", project=project, actor=actor, target=_target(budget), detail=detail)
    return budget


def _target(budget: CostBudget) -> str:
    return f"{budget.period}{_for_scope(budget)}"


def _for_scope(budget: CostBudget) -> str:
    scope = scope_of(budget)
    return f" for {scope}" if scope else ""


@transaction.atomic
def budget_delete(*, budget: CostBudget, actor: Actor) -> None:
    """Delete a budget with its alerts."""
    detail = {"limit_microusd": budget.limit_microusd}
    target = _target(budget)
    audit_record(action="budget.deleted", project=budget.project, actor=actor, target=target, detail=detail)
    budget.delete()


def cost_budgets_check(*, now: datetime | None = None) -> int:
    """Check all budgets, send alerts for newly reached shares and return the number of alerts."""
    count = 0
    for budget in CostBudget.objects.select_related("project").order_by("pk"):
        count += _alert(budget_spent(budget, now=now))
    alert_emails_send()
    return count


@transaction.atomic
def _alert(spent: BudgetSpending) -> int:
    """Record the newly reached shares. If there are several, only the largest is reported."""
    reached = [share for share in ALERT_PERCENTAGES if spent.percent >= share]
    # Locking the budget's row serializes concurrent checks.
    if not reached or not CostBudget.objects.select_for_update().filter(pk=spent.budget.pk).first():
        return 0
    limit = spent.budget.limit_microusd
    known = BudgetAlert.objects.filter(budget=spent.budget, starts=spent.span.first, limit_microusd=limit)
    new = sorted(set(reached) - set(known.values_list("share", flat=True)))
    if not new:
        return 0
    rows = [
        BudgetAlert(
            budget=spent.budget,
            starts=spent.span.first,
            share=share,
            limit_microusd=limit,
            spent_microusd=spent.microusd,
            mail_pending=bool(spent.budget.emails) and share == new[-1],
        )
        for share in new
    ]
    BudgetAlert.objects.bulk_create(rows)
    event_emit(
        project_id=spent.budget.project_id, event=WebhookEvent.BUDGET, payload=_payload(spent, new[-1])
    )
    return 1


def _payload(spent: BudgetSpending, share: int) -> dict[str, object]:
    return {
        "project": spent.budget.project.slug,
        "budget": {
            "period": spent.budget.period,
            "scope": spent.budget.scope,
            "scope_value": spent.name,
            "starts": spent.span.first,
            "ends": spent.span.last,
            "time_zone": spent.budget.time_zone,
            "limit_microusd": spent.budget.limit_microusd,
            "spent_microusd": spent.microusd,
            "share_percent": share,
        },
    }


def alert_emails_send() -> int:
    """Send the pending emails and return their number. Without a mail server they are discarded.

    Stops if the mail server is down, because each timeout takes seconds. The next run continues.
    """
    count = 0
    pending = BudgetAlert.objects.filter(mail_pending=True).order_by("at").values_list("pk", flat=True)
    for pk in pending[:100]:
        try:
            count += _mail(pk)
        except OSError as error:  # smtplib errors are OSErrors
            log.warning("budget alert %s was not emailed: %s", pk, error)
            break
    return count


@transaction.atomic
def _mail(pk: int) -> int:
    # The lock keeps concurrent runs from sending the email too. If this one dies, the email remains pending:
    # one that arrives twice is better than none.
    rows = BudgetAlert.objects.select_related("budget__project").filter(pk=pk, mail_pending=True)
    alert = rows.select_for_update(skip_locked=True, of=("self",)).first()
    if alert is None:
        return 0
    sent, retry = 0, False
    try:
        sent = _send(alert) if settings.EMAIL_HOST else 0
    except _REJECTIONS as error:
        log.warning("budget alert %s was not emailed: %s", pk, error)
        retry = alert.mail_attempts + 1 < _MAIL_ATTEMPTS
    BudgetAlert.objects.filter(pk=pk).update(mail_pending=retry, mail_attempts=F("mail_attempts") + 1)
    return sent


def _send(alert: BudgetAlert) -> int:
    budget = alert.budget
    spent, limit = alert.spent_microusd / 1_000_000, alert.limit_microusd / 1_000_000
    kind = f"{ADJECTIVES[budget.period]} budget{_for_scope(budget)}"
    subject = f"{budget.project.name}: {alert.share}% of the {kind} reached"
    subject = " ".join(subject.split())  # names may contain newlines, which a header must not
    text = (
        f"{budget.project.name} has spent ${spent:,.2f} of its {kind} of "
        f"${limit:,.2f} in the period starting {date_format(alert.starts, 'M j, Y')} ({budget.time_zone}).\n"
    )
    if settings.CONTEXTAPP_PUBLIC_URL:
        text += f"\n{settings.CONTEXTAPP_PUBLIC_URL}{reverse('trends', args=[budget.project.slug])}\n"
    return send_mail(subject, text, settings.DEFAULT_FROM_EMAIL, budget.emails)
