"""What a project may spend, and who was told that it has spent most of it."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from accounts.models import Project


class Period(models.TextChoices):
    DAY = "day", "a day"
    WEEK = "week", "a week"
    MONTH = "month", "a month"


class CostBudget(models.Model):
    """Money that a project may spend in each day, week or month of a time zone.

    It stops nothing: it tells at 50, 80 and 100 %, on the page, by e-mail and to the webhooks.
    """

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="cost_budgets", db_index=False
    )
    period = models.CharField(max_length=8, choices=Period.choices)
    limit_microusd = models.PositiveBigIntegerField()
    time_zone = models.CharField(max_length=64, default="UTC")
    emails = ArrayField(models.EmailField(), default=list)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "period"], name="budget_period")]

    def __str__(self) -> str:
        return f"{self.limit_microusd} micro-dollars in {self.get_period_display()}"


class BudgetAlert(models.Model):
    """That a share of a budget was reached in a period: the row is what makes it be told once."""

    budget = models.ForeignKey(CostBudget, on_delete=models.CASCADE, related_name="alerts", db_index=False)
    # The first day of the period, in the budget's zone.
    starts = models.DateField()
    share = models.PositiveSmallIntegerField()
    spent_microusd = models.PositiveBigIntegerField()
    at = models.DateTimeField(default=timezone.now)
    # E-mails are sent by a later task, which tries again.
    mail_due = models.BooleanField(default=False)
    mail_attempts = models.PositiveSmallIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["budget", "starts", "share"], name="alert_once")]
        indexes = [
            # The beat looks for e-mails that are due.
            models.Index(fields=["at"], condition=models.Q(mail_due=True), name="alert_mail_due")
        ]

    def __str__(self) -> str:
        return f"{self.share} % of {self.budget_id} in the period from {self.starts}"
