"""The contents of evicted messages, collected message by message on top of the previous recap."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from compaction.command_chains import Failures, program_run, unfiltered
from compaction.deadline import check_deadline
from compaction.messages import Message, Role, Text, ToolCall, ToolResult
from compaction.paths import Paths
from compaction.prefixes import common_length
from compaction.recap.commands import is_failure, is_known, is_rejected, outcome_of
from compaction.recap.decisions import decisions
from compaction.recap.handles import handles_of
from compaction.recap.name_tally import NameTally
from compaction.recap.statements import statements
from compaction.recap.values import Item, Recap, Status
from compaction.references import mentions
from compaction.requests import is_client_command, is_interruption, is_output, is_summary, own_words
from compaction.shell_effects import deleted_paths, is_inspection
from compaction.text_names import argument_names, names_of, result_names
from compaction.tokens import TokenCounter
from compaction.tools import Action, Kind, action_of

_TURN = re.compile(r"^t\d+: ")
_REQUEST = re.compile(r"user t\d+: ")
#: A word or a punctuation mark.
_WORD = re.compile(r"\w+|[^\w\s]")
#: The share of an interrupted request that its correction contains.
_ALIKE = 0.8

_VERBS = {Kind.READ: "read", Kind.EDIT: "edited", Kind.WRITE: "written", Kind.SEARCH: "searched"}
_UNKNOWN = Action(kind=Kind.OTHER)


@dataclass(slots=True)
class Contents:
    """Everything that a recap may contain, by subject, in chronological order."""

    files: dict[str, Item] = field(default_factory=dict)
    commands: dict[str, Item] = field(default_factory=dict)
    decisions: dict[str, Item] = field(default_factory=dict)  #: of earlier recaps
    requests: dict[str, Item] = field(default_factory=dict)
    statements: dict[str, Item] = field(default_factory=dict)  #: of a conversation without tools
    names: NameTally = field(default_factory=NameTally)
    paths: Paths = field(default_factory=Paths)
    home: dict[str, str] = field(default_factory=dict)  #: the file that a name was found in
    _calls: dict[str, Action] = field(default_factory=dict)
    _used_tools: bool = False  #: before the messages that are observed, or in the text of messages
    _acts_in_text: bool = False  #: whether the model calls tools in its text, so that any text may be a call
    _is_interrupted: bool = False  #: whether the user interrupted the model since the latest request
    #: The keys of requests that the latest answer completed, and of open requests: ordered sets.
    _closed: dict[str, None] = field(default_factory=dict)
    _open: dict[str, None] = field(default_factory=dict)
    _failures: Failures = field(default_factory=Failures)
    _runs: dict[str, str] = field(default_factory=dict)  #: the text of each command without filters
    _words: dict[str, str] = field(default_factory=dict)  #: the key of each request by its words
    _said: list[tuple[int, int, str]] = field(default_factory=list)  #: position, turn and text by the model

    def fold(self, previous: Recap) -> None:
        """Add the contents of an earlier recap."""
        self.decisions.update((item.text, item) for item in previous.decisions)
        self.commands.update((item.text, item) for item in previous.facts)
        for item in previous.facts:
            if item.text.startswith("`"):
                self._runs[unfiltered(item.text.strip("`"))] = item.text
            if is_failure(item):
                self._failures.add(item.text, item.text.strip("`"))
        self.statements.update((item.text, item) for item in previous.facts)
        self.requests.update((item.text, item) for item in previous.open_items)
        self._words.update((_REQUEST.sub("", key, count=1), key) for key in self.requests)
        # An answer completes requests, but not what a model or a person listed as open.
        is_open = (item.text for item in previous.open_items if item.status is Status.OPEN)
        self._open = dict.fromkeys(filter(_REQUEST.match, is_open))
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
            self._reopen_requests()
        elif message.role is Role.USER:
            self._observe_request(text, message)
        elif message.role is Role.ASSISTANT:
            if not message.tool_calls and not self._acts_in_text:
                self._close_requests(text, message)
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

    def _observe_request(self, text: str, message: Message) -> None:
        words = " ".join(own_words(text).split())
        if not words:
            self._is_interrupted = self._is_interrupted or is_interruption(text)
        elif not is_summary(text):
            key = f"user t{message.turn}: {words}"
            latest = next(reversed(self._open), "")
            if _is_corrected(latest, key, is_interrupted=self._is_interrupted) or _is_command(latest, key):
                del self._open[latest], self.requests[latest]
            repeated = self._words.get(words, key)
            self._words[words] = key
            if repeated != key:
                for known in (self.requests, self._open, self._closed):
                    known.pop(repeated, None)
            self.requests[key] = Item(text=key, status=Status.OPEN, sources=(message.position,))
            self._open[key] = None
            self._closed.pop(key, None)  # the same request again
            self._is_interrupted = self._acts_in_text = False

    def _close_requests(self, answer: str, message: Message) -> None:
        """Mark earlier requests as done, and note the answer on the newest: the assistant ended its turn."""
        still_open, newest = dict[str, None](), ""
        self._closed = {}
        for key in self._open:
            item = self.requests[key]
            if item.sources and item.sources[-1] < message.position:
                self.requests[key] = replace(item, status=Status.DONE)
                self._closed[key] = None
                newest = key
            else:
                still_open[key] = None
        self._open = still_open
        if newest and (words := " ".join(answer.split())):
            note = f"answered t{message.turn}: {words}"
            self.requests[newest] = replace(self.requests[newest], notes=(note,))

    def _reopen_requests(self) -> None:
        """Mark the requests that the latest answer completed as open: it was a call."""
        for key in self._closed:
            self.requests[key] = replace(self.requests[key], status=Status.OPEN, notes=())
        self._open.update(self._closed)
        self._closed = {}

    def _observe_call(self, call: ToolCall, message: Message) -> None:
        action = action_of(call)
        if action.path and (path := self.paths.first_path(action.path)) != action.path:
            action = action._replace(path=path)
        self._calls[call.call_id] = action
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
        self._mention_in_order(result.text, message, action.path)
        if action.command and action.kind in (Kind.WRITE, Kind.EDIT):
            action = action._replace(command=program_run(action.command), shows_file=False)
        elif action.kind not in (Kind.COMMAND, Kind.OTHER):
            return
        if action.command or action.label:
            self._observe_outcome(action, result, message)

    def _observe_outcome(self, action: Action, result: ToolResult, message: Message) -> None:
        item = outcome_of(action, result, message)
        if is_rejected(result):
            self.commands.setdefault(item.text, item)
            return
        if not is_known(item):
            self._observe_unknown(item, action)
            return
        self.commands.pop(item.text, None)
        self._replace_run(unfiltered(action.command) if action.command else item.text, item.text)
        if item.status:
            self._drop_failures(self._failures.add(item.text, action.command))
        else:
            self._failures.discard(item.text)
            self._drop_failures(self._failures.settle(action.command))
            if removed := deleted_paths(action.command):
                self._drop_failures(self._failures.without_files(removed))
        if action.label or item.status or not is_inspection(action.command):
            self.commands[item.text] = item

    def _observe_unknown(self, item: Item, action: Action) -> None:
        """Note a run whose outcome is unknown, unless an earlier one failed or it only shows something."""
        command = unfiltered(action.command)
        earlier = self.commands.get(self._runs.get(command, item.text))
        if not (earlier and is_failure(earlier)) and not is_inspection(action.command):
            self.commands.pop(item.text, None)
            self._replace_run(command, item.text)
            self.commands[item.text] = item

    def _replace_run(self, command: str, text: str) -> None:
        """Leave out the latest run of a command that succeeded with another filter of its output."""
        earlier = self._runs.get(command, text)
        if earlier != text and earlier in self.commands and not is_failure(self.commands[earlier]):
            del self.commands[earlier]
        self._runs[command] = text

    def _drop_failures(self, texts: Iterable[str]) -> None:
        """Leave out the failures that a later command settled."""
        for text in texts:
            if text in self.commands and is_failure(self.commands[text]):
                del self.commands[text]

    def _mention(self, names: Sequence[str], message: Message, home: str = "") -> None:
        self.names.add(names, message.position, is_own=message.role is Role.ASSISTANT)
        if home:
            known = self.home.get(home)
            self.home.update(dict.fromkeys(names, home))
            if known is not None:
                self.home[home] = known
            else:
                self.home.pop(home, None)

    def _mention_in_order(self, text: str, message: Message, home: str) -> None:
        """Count names, each for the file that was read or that a search result names before it."""
        names = result_names(text).names
        self._mention(names, message, home)
        if not home and not self.files.keys().isdisjoint(names):
            self._attribute(text)

    def _attribute(self, text: str) -> None:
        current = None
        for name in mentions(text):
            if name in self.files:
                current = name
            elif current and not current.endswith(name):
                self.home.setdefault(name, current)


def _is_command(earlier: str, later: str) -> bool:
    """Whether a request is only a command of the client: the user typed another one before any answer."""
    turn = _REQUEST.match(later)
    return turn is not None and earlier.startswith(turn[0]) and is_client_command(earlier[turn.end() :])


def _is_corrected(earlier: str, later: str, *, is_interrupted: bool) -> bool:
    """Whether a request of the same turn replaces the one before it.

    It does if it only inserts words into it, or changes few characters of it after an interruption.
    """
    turn = _REQUEST.match(later)
    if turn is None or not earlier.startswith(turn[0]):
        return False
    texts = earlier[turn.end() :], later[turn.end() :]
    old, new = texts if is_interrupted else map(_WORD.findall, texts)
    start = common_length(old, new)
    end = common_length(old[start:][::-1], new[start:][::-1])
    return start + end >= len(old) * (_ALIKE if is_interrupted else 1)
