"""Commands and sub-agents in the background, whose outcome a later result reports.

The agent asks for it with a call that contains their id (`BashOutput` and `TaskOutput` in Claude Code,
`write_stdin` in Codex), or the client notifies it.
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
#: The id in the note of an earlier recap.
_NOTED = re.compile(r'started t\d+ ".*?(?:agentId:|\bID:?) ([\w-]+)')


@dataclass(slots=True)
class Background:
    """The commands and sub-agents that were started, by id."""

    _started: dict[str, Action] = field(default_factory=dict)
    _asked: dict[str, Action] = field(default_factory=dict)  #: what each call without a result asks about

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
        """Note which of them a call asks about: one of its arguments is an id."""
        if not self._started:
            return
        arguments = loads_object_fast(call.arguments)
        ids = (str(value) for name, value in arguments.items() if name.lower().endswith("id"))
        if asked := next((self._started[each] for each in ids if each in self._started), None):
            self._asked[call.call_id] = asked

    def asked(self, result: ToolResult) -> Action | None:
        """Return the command or the sub-agent that the call of a result asked about."""
        return self._asked.pop(result.call_id, None)

    def notified(self, text: str) -> Iterator[tuple[Action, ToolResult]]:
        """Yield the outcomes in the notifications that a user message contains."""
        if not self._started:
            return
        for notification in text.split(_NOTIFICATION)[1:]:
            outcome = notification.partition(_NOTIFICATION_END)[0]
            task = _TASK.match(outcome)
            if task and (action := self._started.get(task[1])) and is_ended(outcome):
                yield action, ToolResult(call_id="", text=outcome)
