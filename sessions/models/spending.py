"""Cost budgets and the alerts that were sent for them."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from accounts.models import Project


class Period(models.TextChoices):
    DAY = "day", "Day"
    WEEK = "week", "Week"
    MONTH = "month", "Month"


class BudgetScope(models.TextChoices):
    PROJECT = "project", "the whole project"
    AGENT = "agent", "agent"
    MODEL = "model", "model"
    TAG = "tag", "tag"
    MEMBER = "member", "member"


class CostBudget(models.Model):
    """The expected maximum cost per day, week or month in a time zone, of a project or a part of it.

    `scope_value` is the name of the agent, model or tag, or the id of the member. A budget blocks nothing.
    Alerts at 50%, 80% and 100% appear on the page and go out by email and webhook.
    """

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="cost_budgets", db_index=False
    )
    period = models.CharField(max_length=8, choices=Period.choices)
    scope = models.CharField(max_length=8, choices=BudgetScope.choices, default=BudgetScope.PROJECT)
    scope_value = models.CharField(max_length=200, blank=True)
    limit_microusd = models.PositiveBigIntegerField()
    time_zone = models.CharField(max_length=64, default="UTC")
    emails = ArrayField(models.EmailField(), default=list)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "period", "scope", "scope_value"], name="budget_period"
            )
        ]

    def __str__(self) -> str:
        return f"{self.limit_microusd} micro-dollars per {self.period}"


class BudgetAlert(models.Model):
    """A share of a budget that was reached in a period. The row ensures that it is reported only once.

    Shares of another limit are reported separately: after an alert, people raise the limit.
    """

    budget = models.ForeignKey(CostBudget, on_delete=models.CASCADE, related_name="alerts", db_index=False)
    # The first day of the period, in the budget's time zone.
    starts = models.DateField()
    share = models.PositiveSmallIntegerField()
    limit_microusd = models.PositiveBigIntegerField()
    spent_microusd = models.PositiveBigIntegerField()
    at = models.DateTimeField(default=timezone.now)
    # A later task sends the emails and retries if that fails.
    mail_pending = models.BooleanField(default=False)
    mail_attempts = models.PositiveSmallIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["budget", "starts", "limit_microusd", "share"], name="alert_once")
        ]
        indexes = [
            # The scheduler sends pending emails.
            models.Index(fields=["at"], condition=models.Q(mail_pending=True), name="alert_mail_pending")
        ]

    def __str__(self) -> str:
        return f"{self.share}% of {self.budget_id} in the period from {self.starts}"
