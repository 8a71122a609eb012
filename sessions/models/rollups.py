"""Usage per quarter-hour and per day, so that trends need not scan turns."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.models import Project
from sessions.models.session import AgentSession


class UsageSums(models.Model):
    """The usage of one model by one session in an interval that begins at `at`.

    Agent, tags and member are joined from the session, so changing them also changes past figures. Turns that
    are billed to another session are excluded.

    `hidden_tokens` counts the tokens that edits kept out of prompts, in the provider's tokens and at most the
    model's window, summed over the calls that reported their usage. `saved_microusd` is what they would have
    cost (`services/spending/rollups.py`). `client_compactions` counts the turns before which the client
    compacted its own context.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="+", db_index=False)
    at = models.DateTimeField()
    model = models.CharField(max_length=200, blank=True)
    turns = models.PositiveIntegerField(default=0)
    unpriced_turns = models.PositiveIntegerField(default=0)
    uncached_tokens = models.PositiveBigIntegerField(default=0)
    cache_read_tokens = models.PositiveBigIntegerField(default=0)
    cache_write_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cost_microusd = models.PositiveBigIntegerField(default=0)
    hidden_tokens = models.PositiveBigIntegerField(default=0)
    saved_microusd = models.PositiveBigIntegerField(default=0)
    client_compactions = models.PositiveIntegerField(default=0)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.session_id} {self.at:%Y-%m-%d %H:%M} {self.model}"


class UsageRollup(UsageSums):
    """Usage in a quarter-hour (UTC).

    Days depend on the viewer's time zone, and the offsets of time zones are multiples of a quarter-hour.
    """

    pk = models.CompositePrimaryKey("session_id", "at", "model")

    class Meta(UsageSums.Meta):
        # Trends read a period of a project.
        indexes = [models.Index(fields=["project", "at"], name="rollup_span")]


class DailyUsage(UsageSums):
    """Usage in a day (UTC). Sums of long periods read it instead of most quarter-hours."""

    pk = models.CompositePrimaryKey("session_id", "at", "model")

    class Meta(UsageSums.Meta):
        indexes = [models.Index(fields=["project", "at"], name="daily_usage_span")]


class CallHistogram(models.Model):
    """One slot of a histogram of model calls: a measure of one session and model in 15 minutes (UTC).

    `calls` counts the calls whose value is from 2^(slot/4) up to 2^((slot+1)/4): percentiles are accurate to
    9%. `measure` is the time until the first token or the duration of the call, in milliseconds, or the size
    of its prompt in tokens.
    """

    class Measure(models.TextChoices):
        FIRST = "first_token"
        DURATION = "duration"
        PROMPT = "prompt"

    pk = models.CompositePrimaryKey("session_id", "at", "model", "measure", "slot")
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="call_histograms", db_index=False
    )
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="call_histograms", db_index=False
    )
    at = models.DateTimeField()
    model = models.CharField(max_length=200, blank=True)
    measure = models.CharField(max_length=16, choices=Measure.choices)
    slot = models.PositiveSmallIntegerField()
    calls = models.PositiveIntegerField()

    class Meta:
        # Trends read a period of a project, usually without the rows themselves.
        indexes = [
            models.Index(
                fields=["project", "measure", "at"], include=["slot", "calls"], name="call_histogram_span"
            )
        ]

    def __str__(self) -> str:
        return f"{self.session_id} {self.at:%Y-%m-%d %H:%M} {self.model} {self.measure} {self.slot}"


class RollupCursor(models.Model):
    """The number of turns, from the first, that the rollups of a session contain.

    `version` is that of the calculation (see `services.spending.rollups`).
    """

    session = models.OneToOneField(AgentSession, on_delete=models.CASCADE, primary_key=True)
    turns = models.PositiveIntegerField()
    version = models.SmallIntegerField(default=0, db_default=0)

    def __str__(self) -> str:
        return f"{self.session_id}: {self.turns} turns"


class TurnStretch(models.Model):
    """A summary of `TURNS` consecutive turns of a long session, so that pages need not read them.

    A value and the index of its turn are one number: the value, shifted by 32 bits, plus the index.
    `extremes` are the minimum and the maximum of each size that the chart draws, `growths` the largest
    increases of the prompt, `costs` the highest in micro-dollars, `pauses` seconds. `misses` are cached
    tokens that a call did not read, and `missed_after` the turns of the calls before. `marked` are the turns
    that the chart marks. `estimated_outputs` is the number of calls whose output tokens are estimated. The
    messages of the turns are those from `first_position` up to `end_position`; `system_tokens` are the
    tokens of the system messages among them.
    """

    #: The number of turns of a stretch.
    TURNS = 100

    pk = models.CompositePrimaryKey("session_id", "number")
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="turn_stretches", db_index=False
    )
    number = models.PositiveIntegerField()
    extremes = ArrayField(models.BigIntegerField(null=True))
    growths = ArrayField(models.BigIntegerField())
    costs = ArrayField(models.BigIntegerField())
    pauses = ArrayField(models.BigIntegerField())
    misses = ArrayField(models.BigIntegerField())
    missed_after = ArrayField(models.IntegerField())
    marked = ArrayField(models.IntegerField())
    estimated_outputs = models.PositiveIntegerField()
    first_position = models.IntegerField()
    end_position = models.IntegerField()
    message_count = models.IntegerField()
    message_tokens = models.BigIntegerField()
    system_tokens = models.BigIntegerField()

    def __str__(self) -> str:
        return f"turns of {self.session_id} from {self.number * self.TURNS}"
