"""The contents of evicted messages, collected message by message on top of the previous recap."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from compaction.deadline import check_deadline
from compaction.identifiers.extract import mentions
from compaction.identifiers.texts import argument_names, names_of, result_names
from compaction.messages import Message, Role, Text, ToolCall, ToolResult
from compaction.recap.background import Background
from compaction.recap.commands import Commands
from compaction.recap.decisions import decisions
from compaction.recap.handles import handles_of
from compaction.recap.name_tally import NameTally
from compaction.recap.open_items import OpenItems
from compaction.recap.statements import statements
from compaction.recap.todo_list import TodoList
from compaction.recap.values import Item, Recap
from compaction.shell.chains import program_run
from compaction.sizes.tokens import TokenCounter
from compaction.tools.actions import Action, Kind, action_of
from compaction.tools.outcomes import is_ended, is_started
from compaction.tools.paths import Paths
from compaction.user_requests import is_output

_TURN = re.compile(r"^t\d+: ")

_VERBS = {Kind.READ: "read", Kind.EDIT: "edited", Kind.WRITE: "written", Kind.SEARCH: "searched"}
_UNKNOWN = Action(kind=Kind.OTHER)


@dataclass(slots=True)
class Contents:
    """Everything that a recap may contain, by subject, in chronological order."""

    files: dict[str, Item] = field(default_factory=dict)
    commands: Commands = field(default_factory=Commands)
    background: Background = field(default_factory=Background)
    decisions: dict[str, Item] = field(default_factory=dict)  #: of earlier recaps
    open_items: OpenItems = field(default_factory=OpenItems)
    todo_list: TodoList = field(default_factory=TodoList)
    statements: dict[str, Item] = field(default_factory=dict)  #: of a conversation without tools
    names: NameTally = field(default_factory=NameTally)
    paths: Paths = field(default_factory=Paths)
    home: dict[str, str] = field(default_factory=dict)  #: the file that a name was found in
    _calls: dict[str, Action] = field(default_factory=dict)
    _used_tools: bool = False  #: before the messages that are observed, or in the text of messages
    _acts_in_text: bool = False  #: whether the model calls tools in its text, so that any text may be a call
    _said: list[tuple[int, int, str]] = field(default_factory=list)  #: position, turn and text by the model

    def fold(self, previous: Recap) -> None:
        """Add the contents of an earlier recap."""
        self.decisions.update((item.text, item) for item in previous.decisions)
        self.commands.fold(previous)
        self.background.fold(previous)
        self.statements.update((item.text, item) for item in previous.facts)
        self.open_items.fold(previous)
        self.todo_list.fold(previous)
        has_commands = any(item.text.startswith("`") for item in previous.facts)
        self._used_tools = has_commands or previous.handles_left_out > 0 or bool(handles_of(previous))
        self.names.fold(
            [*previous.reserve, *chain.from_iterable(item.mentions for item in previous.entities)]
        )
        for item in previous.entities:
            if item.notes:
                self.files[self.paths.first_path(item.text)] = replace(item, mentions=(), handles=())
                self.home.update((mention.name, item.text) for mention in item.mentions)

    @property
    def is_prose(self) -> bool:
        """Whether no tools were used."""
        return not (self._calls or self.files or self._used_tools)

    def observe(self, message: Message) -> None:
        """Add one evicted message. Messages must be added in chronological order."""
        check_deadline()
        for part in message.parts:
            if isinstance(part, Text):
                self._observe_text(part.text, message)
            elif isinstance(part, ToolCall):
                self._observe_call(part, message)
            elif isinstance(part, ToolResult):
                self._observe_result(part, message)

    def _observe_text(self, text: str, message: Message) -> None:
        self._mention(names_of(text), message)
        if message.role is Role.USER and not self._calls and is_output(text, message.turn):
            self._acts_in_text = self._used_tools = True
            self.open_items.reopen()
        elif message.role is Role.USER:
            for action, result in self.background.notified(text):
                self.commands.add(action, result, message)
            if self.open_items.add(text, message):
                self._acts_in_text = False
        elif message.role is Role.ASSISTANT:
            if not message.tool_calls and not self._acts_in_text:
                self.open_items.complete(text, message)
            self._said.append((message.position, message.turn, text))
        if self.is_prose:
            for sentence in statements(text):
                key = f"{message.role} t{message.turn}: {sentence}"
                self.statements[key] = Item(text=key, sources=(message.position,))

    def newest_decisions(self, cap_tokens: int, counter: TokenCounter) -> Iterable[Item]:
        """Return the decisions of earlier recaps, and the newest others.

        Returns at least as many as fit the cap. Most texts are therefore never searched for decisions.
        """
        newest: dict[str, Item] = {}
        latest = -1
        for position, turn, text in reversed(self._said):
            if cap_tokens < 0 and position != latest:
                break
            latest = position
            for sentence in reversed(decisions(text)):
                if sentence not in newest:
                    newest[sentence] = item = Item(text=f"t{turn}: {sentence}", sources=(position,))
                    cap_tokens -= counter.count(item.render()) + 1
        earlier = (item for text, item in self.decisions.items() if _TURN.sub("", text) not in newest)
        return [*earlier, *reversed(newest.values())]

    def _observe_call(self, call: ToolCall, message: Message) -> None:
        action = action_of(call)
        if self.todo_list.observe(call, message):
            action = action._replace(label="")
        else:
            self.background.observe(call)
        if action.path and (path := self.paths.first_path(action.path)) != action.path:
            action = action._replace(path=path)
        self._calls[call.call_id] = action
        self.open_items.reopen()
        self._mention(argument_names(call.arguments), message, action.path)
        if action.path and action.kind in _VERBS:
            self._note(action.path, f"{_VERBS[action.kind]} t{message.turn}", message.position)

    def _note(self, path: str, note: str, position: int) -> None:
        """Record the last operation on a file, once per verb."""
        verb = note.partition(" ")[0]
        item = self.files.pop(path, None)
        if item is None:
            self.files[path] = Item(text=path, notes=(note,), sources=(position,))
            return
        notes = tuple(n for n in item.notes if n.partition(" ")[0] != verb)
        self.files[path] = replace(item, notes=(*notes, note), sources=(*item.sources[-2:], position))

    def _observe_result(self, result: ToolResult, message: Message) -> None:
        action = self._calls.get(result.call_id, _UNKNOWN)
        if self.todo_list.pending:
            self.todo_list.observe_result(result)
        self._mention_in_order(result.text, message, action.path)
        requested = self.background.requested(result)
        if requested and is_started(result.text):
            return  # it still runs
        if requested and is_ended(result.text):
            action = requested
        elif action.command and action.kind in (Kind.WRITE, Kind.EDIT):
            action = action._replace(command=program_run(action.command), shows_file=False)
        elif action.kind not in (Kind.COMMAND, Kind.OTHER):
            return
        if action.command or action.label:
            self.commands.add(action, result, message)
            self.background.start(action, result.text)

    def _mention(self, names: Sequence[str], message: Message, home: str = "") -> None:
        self.names.add(names, message.position, is_own=message.role is Role.ASSISTANT)
        if home:
            found = dict.fromkeys(names, home)
            found.pop(home, None)  # a file is not in itself
            self.home.update(found)

    def _mention_in_order(self, text: str, message: Message, home: str) -> None:
        """Count names, each for the file that was read or that a search result names before it."""
        names = result_names(text).names
        self._mention(names, message, home)
        if not home and not self.files.keys().isdisjoint(names):
            self._attribute(text)

    def _attribute(self, text: str) -> None:
        """Note that names were found in the file that a text names before them."""
        current = None
        for name in mentions(text):
            if name in self.files:
                current = name
            elif current and not current.endswith(name):
                self.home.setdefault(name, current)
