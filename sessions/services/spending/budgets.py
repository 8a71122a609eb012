"""Budgets of money: set, taken away, watched. A share that is reached is told once in each period."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import F

from accounts.models import Project
from accounts.services import audit_record
from sessions.models import BudgetAlert, CostBudget, WebhookEvent
from sessions.selectors.spending import SHARES, Spent, budget_spent
from sessions.services.webhooks.webhooks import event_emit

log = logging.getLogger(__name__)

#: Tries of one e-mail, one at each look of the beat.
_MAIL_ATTEMPTS = 10


@transaction.atomic
def budget_set(
    *,
    project: Project,
    period: str,
    limit_microusd: int,
    time_zone: str = "UTC",
    emails: Sequence[str] = (),
    user: User | None = None,
) -> CostBudget:
    """Makes the budget of the period, or changes it. What was told in this period stays told."""
    values = {"limit_microusd": limit_microusd, "time_zone": time_zone, "emails": list(emails)}
    budget, _ = CostBudget.objects.update_or_create(project=project, period=period, defaults=values)
    audit_record(action="budget.set", project=project, user=user, target=period, detail=values)
    return budget


@transaction.atomic
def budget_delete(*, budget: CostBudget, user: User | None = None) -> None:
    audit_record(action="budget.deleted", project=budget.project, user=user, target=budget.period)
    budget.delete()


def budgets_watch(*, now: datetime | None = None) -> int:
    """Looks at all budgets and tells of shares newly reached; how many alerts there were."""
    told = 0
    for budget in CostBudget.objects.select_related("project").order_by("pk"):
        told += _watch(budget_spent(budget, now=now))
    alerts_mail()
    return told


@transaction.atomic
def _watch(spent: Spent) -> int:
    """Where several shares are reached at once only the largest is told; the others count as told with it."""
    reached = [share for share in SHARES if spent.percent >= share]
    # The budget's row is the lock: two looks at once come one after the other.
    if not reached or not CostBudget.objects.select_for_update().filter(pk=spent.budget.pk).first():
        return 0
    known = BudgetAlert.objects.filter(budget=spent.budget, starts=spent.span.first)
    new = sorted(set(reached) - set(known.values_list("share", flat=True)))
    if not new:
        return 0
    rows = [
        BudgetAlert(
            budget=spent.budget,
            starts=spent.span.first,
            share=share,
            spent_microusd=spent.microusd,
            mail_due=bool(spent.budget.emails) and share == new[-1],
        )
        for share in new
    ]
    BudgetAlert.objects.bulk_create(rows)
    event_emit(project_id=spent.budget.project_id, event=WebhookEvent.BUDGET, told=_told(spent, new[-1]))
    return 1


def _told(spent: Spent, share: int) -> dict[str, object]:
    return {
        "project": spent.budget.project.slug,
        "budget": {
            "period": spent.budget.period,
            "starts": spent.span.first,
            "ends": spent.span.last,
            "time_zone": spent.budget.time_zone,
            "limit_microusd": spent.budget.limit_microusd,
            "spent_microusd": spent.microusd,
            "share_percent": share,
        },
    }


def alerts_mail() -> int:
    """Sends the e-mails that are due; how many. Without a mail server they are given up."""
    due = BudgetAlert.objects.filter(mail_due=True).select_related("budget__project").order_by("at")[:100]
    return sum(_mail(alert) for alert in due)


def _mail(alert: BudgetAlert) -> int:
    # Claimed before it is sent: two looks at once must not tell twice.
    mine = BudgetAlert.objects.filter(pk=alert.pk, mail_due=True, mail_attempts=alert.mail_attempts)
    if not mine.update(mail_due=False, mail_attempts=F("mail_attempts") + 1):
        return 0
    if not settings.EMAIL_HOST:
        return 0
    budget = alert.budget
    spent, limit = alert.spent_microusd / 1_000_000, budget.limit_microusd / 1_000_000
    subject = f"{budget.project.name}: {alert.share} % of the budget for {budget.get_period_display()}"
    text = (
        f"{budget.project.name} has spent ${spent:,.2f} of ${limit:,.2f} in the {budget.period} "
        f"from {alert.starts} ({budget.time_zone}).\n"
    )
    try:
        return send_mail(subject, text, settings.DEFAULT_FROM_EMAIL, budget.emails)
    except OSError as error:  # what smtplib raises is one too
        log.warning("alert %s was not mailed: %s", alert.pk, error)
        again = alert.mail_attempts + 1 < _MAIL_ATTEMPTS
        BudgetAlert.objects.filter(pk=alert.pk).update(mail_due=again)
        return 0
