"""What tools cost a session. Derived from its messages and turns; see `sessions/services/tools/`."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.models import Project
from sessions.models.claimable import Claimable
from sessions.models.session import AgentSession


class ToolScan(Claimable):
    """The progress of counting: `position` is that of the next message.

    `context` are the tokens of the outputs in the context by tool. `charged_turn` is the last turn whose cost
    was divided among the tools.
    """

    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, primary_key=True, related_name="tool_scan"
    )
    position = models.PositiveIntegerField(default=0)
    context = models.JSONField(default=dict)
    charged_turn = models.IntegerField(default=-1)

    def __str__(self) -> str:
        return f"tools of {self.session_id} up to message {self.position}"


class ToolOutputs(models.Model):
    """The outputs of tools in `MESSAGES` consecutive messages, one per element of each array, in order.

    Separate rows would take five times the space.
    """

    #: The number of messages; those of block `number` begin at position `number * MESSAGES`.
    MESSAGES = 128

    pk = models.CompositePrimaryKey("session_id", "number")
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="tool_outputs", db_index=False
    )
    number = models.PositiveIntegerField()
    positions = ArrayField(models.IntegerField())
    turns = ArrayField(models.IntegerField())
    tools = ArrayField(models.TextField())
    tokens = ArrayField(models.IntegerField())
    errors = ArrayField(models.BooleanField())

    def __str__(self) -> str:
        return f"tool outputs of {self.session_id} from message {self.number * self.MESSAGES}"


class ToolRollup(models.Model):
    """The use of one tool by one session on a day (UTC).

    `repeats` counts the outputs that show a file that the session had read before, with the tokens of
    these outputs. `cost_microusd` is the part of the calls' input cost that the tool's outputs cause.
    """

    pk = models.CompositePrimaryKey("session_id", "day", "tool")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="tool_rollups", db_index=False
    )
    day = models.DateField()
    tool = models.CharField(max_length=200)
    calls = models.PositiveIntegerField(default=0)
    call_tokens = models.PositiveBigIntegerField(default=0)
    outputs = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    errors = models.PositiveIntegerField(default=0)
    repeats = models.PositiveIntegerField(default=0)
    repeat_tokens = models.PositiveBigIntegerField(default=0)
    cost_microusd = models.PositiveBigIntegerField(default=0)
    largest_tokens = models.PositiveIntegerField(default=0)
    largest_position = models.PositiveIntegerField(default=0)

    class Meta:
        # The tools of a project in a period.
        indexes = [models.Index(fields=["project", "day"], name="tool_rollup_span")]

    def __str__(self) -> str:
        return f"{self.tool} in {self.session_id} on {self.day}"


class ToolFile(models.Model):
    """A file, or a part of one (`span`), that a session has read, with the tokens of all outputs."""

    pk = models.CompositePrimaryKey("session_id", "path", "span")
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="tool_files", db_index=False
    )
    path = models.CharField(max_length=400)
    span = models.CharField(max_length=200, blank=True)
    reads = models.PositiveIntegerField()
    tokens = models.PositiveBigIntegerField()
    last_position = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.path} in {self.session_id}"
