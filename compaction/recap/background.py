"""Commands and sub-agents in the background, whose outcome a later result reports.

The agent requests it with a call that contains their id (`BashOutput` and `TaskOutput` in Claude Code,
`write_stdin` in Codex), or the client sends a notification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from compaction.jsontext import loads_object_fast
from compaction.messages import ToolCall, ToolResult
from compaction.recap.values import Recap
from compaction.tools.actions import Action, Kind
from compaction.tools.outcomes import is_ended, started_line

_NOTIFICATION, _NOTIFICATION_END = "<task-notification>", "</task-notification>"
_TASK = re.compile(r"\s*<task-id>([^<]*)</task-id>")
#: The arguments that contain the id, in any version of these agents. Others may contain the same number.
_ARGUMENTS = ("task_id", "bash_id", "shell_id", "agent_id", "agentId", "session_id")
#: The id in the note of an earlier recap.
_NOTED = re.compile(r'started t\d+ ".*?(?:agentId:|\bID:?) ([\w-]+)')


@dataclass(slots=True)
class Background:
    """The commands and sub-agents that were started, by id."""

    _started: dict[str, Action] = field(default_factory=dict)
    _requested: dict[str, Action] = field(default_factory=dict)  #: by the call that requests the outcome

    def fold(self, previous: Recap) -> None:
        """Add those of an earlier recap."""
        for item in previous.facts:
            if found := _NOTED.match(", ".join(item.notes)):
                self._started[found[1]] = Action(kind=Kind.OTHER, label=item.text.strip("`"))

    def start(self, action: Action, text: str) -> None:
        """Add a command or a sub-agent if its result reports that it was started."""
        name, _ = started_line(text)
        if name:
            self._started[name] = Action(kind=Kind.OTHER, command=action.command, label=action.label)

    def observe(self, call: ToolCall) -> None:
        """Note whose outcome a call requests."""
        if not self._started:
            return
        arguments = loads_object_fast(call.arguments)
        ids = (str(arguments[name]) for name in _ARGUMENTS if name in arguments)
        if action := next((self._started[each] for each in ids if each in self._started), None):
            self._requested[call.call_id] = action

    def requested(self, result: ToolResult) -> Action | None:
        """Return the command or the sub-agent whose outcome the call of a result requested."""
        return self._requested.pop(result.call_id, None)

    def notified(self, text: str) -> Iterator[tuple[Action, ToolResult]]:
        """Yield the outcomes in the notifications that a user message contains."""
        if not self._started:
            return
        for notification in text.split(_NOTIFICATION)[1:]:
            outcome = notification.partition(_NOTIFICATION_END)[0]
            task = _TASK.match(outcome)
            if task and (action := self._started.get(task[1])) and is_ended(outcome):
                yield action, ToolResult(call_id="", text=outcome)
