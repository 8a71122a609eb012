"""The contents of evicted messages, collected message by message on top of the previous recap."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import re2

from compaction.deadline import check_deadline
from compaction.messages import Message, Role, Text, ToolCall, ToolResult
from compaction.recap.commands import is_rejected, outcome_of, parts_of
from compaction.recap.handles import handles_of
from compaction.recap.name_tally import NameTally
from compaction.recap.statements import statements
from compaction.recap.values import Item, Recap, Status
from compaction.references import mentions
from compaction.requests import is_output, own_words
from compaction.shell_effects import is_inspection
from compaction.text_cache import once_per_text
from compaction.text_names import argument_names, names_of, result_names
from compaction.tokens import TokenCounter
from compaction.tools import Action, Kind, action_of

#: Sentences that state a choice, a cause or a rule.
_DECISION = re.compile(
    r"\b(?:decid|instead|because|so that|root cause|the (?:issue|problem|cause|fix|reason) (?:is|was)"
    r"|going with|I'll (?:use|keep|make|add|change)|let's (?:use|keep)|we (?:should|must)|must not|prefer"
    r"|turns out|found (?:that|the))",
    re.IGNORECASE,
)
#: The same for RE2, which is faster. It finds more, because its word boundaries are those of ASCII.
_MAY_DECIDE = re2.compile(f"(?i){_DECISION.pattern}")
#: Beginnings of text that is not a decision: plans to investigate, guesses, table rows, code comments.
_UNDECIDED = re.compile(
    r"let me (?:check|see|look|find|verify|read|think|search)\b|\||//"
    r"|(?:(?:but|or|and|so) )?(?:maybe|wait)\b|(?:actually, )?i think i (?:found|see)\b",
    re.IGNORECASE,
)
#: Sentences that announce a decision or a cause without naming it.
_EMPTY = re.compile(
    r"(?:(?:so|now|but|and|hmm|okay|good|great|actually|i think)[,!.]? )*(?:"
    r"(?:the|this|that) (?:\w+ )?(?:issue|problem|cause|reason|fix|bug) (?:is|was)(?: still| now| more)? "
    r"(?:clear|simple|obvious|straightforward|complete|done|there|here|different|sound|fundamental)(?: now)?"
    r"|(?:that|this)(?:'s not| is not| isn't) (?:it|the (?:issue|problem|cause))(?: either)?"
    r"|(?:this|that) confirms the (?:root cause|issue|problem)"
    r"|found the (?:actual |root )?(?:bug|issue|problem|cause)"
    r"|i'll (?:make|add|change|use|keep) (?:the|these|those|this|that|them|it)(?: changes?| fix| tests?)?"
    r")[.!]*",
    re.IGNORECASE,
)
_TURN = re.compile(r"^t\d+: ")
_REQUEST = re.compile(r"user t\d+: ")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_INNER_END = re.compile(r"[.!?]\s")  # begins with a set of characters, so the search is fast

_VERBS = {Kind.READ: "read", Kind.EDIT: "edited", Kind.WRITE: "written", Kind.SEARCH: "searched"}
_UNKNOWN = Action(kind=Kind.OTHER)

#: Longer sentences are prose about the work, not decisions (characters).
_MIN_SENTENCE, _MAX_SENTENCE = 20, 280


@dataclass(slots=True)
class Contents:
    """Everything that a recap may contain, by subject, in chronological order."""

    files: dict[str, Item] = field(default_factory=dict)
    commands: dict[str, Item] = field(default_factory=dict)
    decisions: dict[str, Item] = field(default_factory=dict)  #: of earlier recaps
    requests: dict[str, Item] = field(default_factory=dict)
    statements: dict[str, Item] = field(default_factory=dict)  #: of a conversation without tools
    names: NameTally = field(default_factory=NameTally)
    home: dict[str, str] = field(default_factory=dict)  #: the file that a name was found in
    _calls: dict[str, Action] = field(default_factory=dict)
    _used_tools: bool = False  #: before the messages that are observed, or in the text of messages
    _acts_in_text: bool = False  #: whether the model calls tools in its text, so that any text may be a call
    _closed: list[str] = field(default_factory=list)  #: the keys of requests that the latest answer completed
    _open: list[str] = field(default_factory=list)  #: the keys of open requests
    _said: list[tuple[int, int, str]] = field(default_factory=list)  #: position, turn and text by the model

    def fold(self, previous: Recap) -> None:
        """Add the contents of an earlier recap."""
        self.decisions.update((item.text, item) for item in previous.decisions)
        self.commands.update((item.text, item) for item in previous.facts)
        self.statements.update((item.text, item) for item in previous.facts)
        self.requests.update((item.text, item) for item in previous.open_items)
        # An answer completes requests, but not what a model or a person listed as open.
        is_open = (item.text for item in previous.open_items if item.status is Status.OPEN)
        self._open = list(filter(_REQUEST.match, is_open))
        has_commands = any(item.text.startswith("`") for item in previous.facts)
        self._used_tools = has_commands or previous.handles_left_out > 0 or bool(handles_of(previous))
        self.names.fold(
            [*previous.reserve, *chain.from_iterable(item.mentions for item in previous.entities)]
        )
        for item in previous.entities:
            if item.notes:
                self.files[item.text] = replace(item, mentions=(), handles=())
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
        if message.role is Role.USER and is_output(text, message.turn):
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
            for sentence in reversed(_decisions(text)):
                if sentence not in newest:
                    newest[sentence] = item = Item(text=f"t{turn}: {sentence}", sources=(position,))
                    cap_tokens -= counter.count(item.render()) + 1
        earlier = (item for text, item in self.decisions.items() if _TURN.sub("", text) not in newest)
        return [*earlier, *reversed(newest.values())]

    def _observe_request(self, text: str, message: Message) -> None:
        words = " ".join(own_words(text).split())
        if words:
            key = f"user t{message.turn}: {words}"
            self.requests[key] = Item(text=key, status=Status.OPEN, sources=(message.position,))
            self._open.append(key)

    def _close_requests(self, answer: str, message: Message) -> None:
        """Mark earlier requests as done, and note the answer on the newest: the assistant ended its turn."""
        still_open, newest = [], ""
        self._closed = []
        for key in self._open:
            item = self.requests[key]
            if item.sources and item.sources[-1] < message.position:
                self.requests[key] = replace(item, status=Status.DONE)
                self._closed.append(key)
                newest = key
            else:
                still_open.append(key)
        self._open = still_open
        if newest and (words := " ".join(answer.split())):
            note = f"answered t{message.turn}: {words}"
            self.requests[newest] = replace(self.requests[newest], notes=(note,))

    def _reopen_requests(self) -> None:
        """Mark the requests that the latest answer completed as open: it was a call."""
        for key in self._closed:
            self.requests[key] = replace(self.requests[key], status=Status.OPEN, notes=())
        self._open += self._closed
        self._closed = []

    def _observe_call(self, call: ToolCall, message: Message) -> None:
        action = action_of(call)
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
        if action.kind in (Kind.COMMAND, Kind.OTHER) and (action.command or action.label):
            self._observe_outcome(action, result, message)

    def _observe_outcome(self, action: Action, result: ToolResult, message: Message) -> None:
        item = outcome_of(action, result, message)
        if is_rejected(result):
            self.commands.setdefault(item.text, item)
            return
        self.commands.pop(item.text, None)
        if action.label or item.status or not is_inspection(action.command):
            self.commands[item.text] = item
        if not item.status:
            for part in parts_of(action.command):
                if part in self.commands and self.commands[part].status:
                    del self.commands[part]

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


@once_per_text(1 << 13)
def _decisions(text: str) -> Sequence[str]:
    """Return the first and the last sentence that state a decision. Those in between are usually drafts."""
    if not _MAY_DECIDE.search(text.encode("utf-8", "replace")):  # RE2 rejects lone surrogates
        return ()
    sentences = [sentence.replace("**", "").strip(" -*#") for sentence in _sentences(text)]
    first = next((n for n, sentence in enumerate(sentences) if _decides(sentence)), None)
    if first is None:
        return ()
    last = next(n for n in range(len(sentences) - 1, -1, -1) if _decides(sentences[n]))
    return (sentences[first],) if first == last else (sentences[first], sentences[last])


def _sentences(text: str) -> Iterator[str]:
    """Split a text at line breaks and ends of sentences. Only few lines need the pattern."""
    is_ended = False
    for line in text.split("\n"):
        if is_ended:  # the spaces after a sentence may include line breaks
            line = line.lstrip()
            if not line:
                continue
        bare = line.rstrip()
        is_ended = bare.endswith((".", "!", "?"))
        shown = bare if is_ended else line
        if _INNER_END.search(shown):
            yield from _SENTENCE_END.split(shown)
        else:
            yield shown


def _decides(sentence: str) -> bool:
    return (
        _MIN_SENTENCE <= len(sentence) <= _MAX_SENTENCE
        and _DECISION.search(sentence) is not None
        and not _UNDECIDED.match(sentence)
        and not _EMPTY.fullmatch(sentence)
        and not sentence.endswith(("?", ":"))
    )
