"""The to-do list of an agent: the steps that are not done, each an open item of a recap.

Most agents write the whole list with each call (`TodoWrite`, `update_plan`, `write_todos`). Cursor's writes
may contain only the steps that change (`merge`). Claude Code's `TaskCreate` and `TaskUpdate` change one step.
A call changes the list when its result arrives, unless it failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compaction.jsontext import loads_object_fast
from compaction.messages import Message, ToolCall, ToolResult
from compaction.recap.values import Item, Recap, Status
from compaction.shortening import shortened
from compaction.tools.outcomes import is_error

_TOOL = re.compile(r"(?<![a-z])(?:todo|plan|task)|T[Oo][Dd][Oo]|Plan|Task")
_CREATE, _UPDATE = "TaskCreate", "TaskUpdate"
_CREATED = re.compile(r"Task #(\S+) created(?: successfully)?: (.+)")
_DONE = frozenset(
    {"cancelled", "canceled", "complete", "completed", "deleted", "done", "finished", "skipped"}
)
#: Fields of a step that do not name it.
_OTHER_FIELDS = frozenset({"id", "status", "priority"})
#: The beginning of the text of a step, with the number of its task in Claude Code.
_STEP = re.compile(r"to do(?: #(\S+))?: ")
_LONGEST = 120
_MOST_STEPS = 12
#: Number of completed requests after which a list that was not changed is abandoned. In recorded sessions, at
#: most one request precedes the next change of a list.
_ABANDONED_AFTER = 2

#: The name and the arguments of a call, and its message.
_Call = tuple[str, Mapping[str, Any], Message]


@dataclass(slots=True)
class TodoList:
    """The steps that are not done, in their order, by number or text."""

    steps: dict[str, Item] = field(default_factory=dict)
    pending: dict[str, _Call] = field(default_factory=dict)  #: calls without a result
    _texts: dict[str, str] = field(default_factory=dict)  #: of the steps in written lists, by their ids

    def fold(self, previous: Recap) -> None:
        """Add the steps of an earlier recap."""
        for item in previous.open_items:
            if found := _STEP.match(item.text):
                self.steps[found[1] or item.text] = item

    def observe(self, call: ToolCall, message: Message) -> bool:
        """Add a call. Returns whether it changes the list, unless it fails."""
        if not _TOOL.search(call.name):
            return False
        arguments = loads_object_fast(call.arguments)
        if call.name not in (_CREATE, _UPDATE) and _steps(arguments) is None:
            return False
        self.pending[call.call_id] = call.name, arguments, message
        return True

    def observe_result(self, result: ToolResult) -> bool:
        """Change the list as the call of this result did. Returns whether the call contains all steps."""
        if result.call_id not in self.pending:
            return False
        name, arguments, message = self.pending.pop(result.call_id)
        if is_error(result):
            return False
        if name == _CREATE:
            if found := _CREATED.match(result.text):
                self._set(found[1], _shortened(f"to do #{found[1]}: {found[2]}"), "pending", message)
        elif name == _UPDATE:
            self._update(arguments, message)
        elif (steps := _steps(arguments)) is not None:
            is_merge = arguments.get("merge") is True
            self._write(steps, message, is_merge=is_merge)
            return not is_merge
        return False

    def observe_shown(self, messages: Sequence[Message]) -> None:
        """Add later messages of the prompt. The steps that they contain are not listed again."""
        for message in messages:
            for call in message.tool_calls:
                if call.name != _CREATE:
                    self.observe(call, message)
            for result in message.tool_results:
                if self.observe_result(result):
                    self.steps.clear()

    def items(self) -> list[Item]:
        """Return the first steps that are not done."""
        return list(self.steps.values())[:_MOST_STEPS]

    def is_abandoned(self, requests: Iterable[Item]) -> bool:
        """Return whether the agent has completed several requests since it last changed the list."""
        changed = max((max(step.sources, default=0) for step in self.steps.values()), default=0)
        later = [
            item for item in requests if item.status is Status.DONE and min(item.sources, default=0) > changed
        ]
        return len(later) >= _ABANDONED_AFTER

    def _update(self, arguments: Mapping[str, Any], message: Message) -> None:
        number, status = str(arguments.get("taskId")), arguments.get("status")
        step = self.steps.get(number)
        if step is not None and isinstance(status, str):
            for key, other in self.steps.items():
                self.steps[key] = replace(other, sources=(*other.sources[:1], message.position))
            self._set(number, step.text, status, message)

    def _write(self, steps: Sequence[Mapping[str, Any]], message: Message, *, is_merge: bool) -> None:
        if not is_merge:
            self.steps.clear()
            self._texts.clear()
        for step in steps:
            number, values = str(step.get("id")), (v for k, v in step.items() if k not in _OTHER_FIELDS)
            if text := next((value for value in values if isinstance(value, str) and value.strip()), ""):
                self._texts[number] = _shortened(f"to do: {text}")
            if name := self._texts.get(number):
                self._set(name, name, step["status"], message)

    def _set(self, key: str, text: str, status: str, message: Message) -> None:
        if status in _DONE:
            self.steps.pop(key, None)
        else:
            note = shortened(f"{status} t{message.turn}", _LONGEST)
            self.steps[key] = Item(text=text, notes=(note,), status=Status.OPEN, sources=(message.position,))


def is_step(item: Item) -> bool:
    """Return whether an open item is a step of a to-do list."""
    return _STEP.match(item.text) is not None


def _steps(arguments: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    """Return the argument that is a list of objects with a status, which may be empty."""
    lists = ((name, value) for name, value in arguments.items() if isinstance(value, list))
    return next((value for name, value in lists if _is_list(value) and (value or _TOOL.search(name))), None)


def _is_list(values: Sequence[Any]) -> bool:
    return all(isinstance(v, dict) and isinstance(v.get("status"), str) for v in values)


def _shortened(text: str) -> str:
    return shortened(" ".join(text.split()), _LONGEST)
