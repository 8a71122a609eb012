"""The open items of a recap: the requests of the user, and which of them an answer has completed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from compaction.messages import Message
from compaction.prefixes import common_length
from compaction.recap.todo_list import is_step
from compaction.recap.values import Item, Recap, Status
from compaction.user_requests import (
    is_client_command,
    is_interruption,
    is_no_answer,
    is_summary,
    own_words,
)

_REQUEST = re.compile(r"user t\d+: ")
#: A word or a punctuation mark.
_WORD = re.compile(r"\w+|[^\w\s]")
#: The share of an interrupted request that its correction contains.
_ALIKE = 0.8


@dataclass(slots=True)
class OpenItems:
    """The requests in chronological order, and what earlier recaps list as open, by their texts."""

    items: dict[str, Item] = field(default_factory=dict)
    _open: dict[str, None] = field(default_factory=dict)  #: the keys of open requests, an ordered set
    _closed: dict[str, None] = field(default_factory=dict)  #: of those that the latest answer completed
    _keys: dict[str, str] = field(default_factory=dict)  #: the key of each request by its words
    _is_interrupted: bool = False  #: whether the user interrupted the model since the latest request

    def fold(self, previous: Recap) -> None:
        """Add the open items of an earlier recap.

        An answer completes requests, but not what a model or a person listed as open.
        """
        self.items.update((item.text, item) for item in previous.open_items if not is_step(item))
        self._keys.update((_REQUEST.sub("", key, count=1), key) for key in self.items)
        is_open = (item.text for item in previous.open_items if item.status is Status.OPEN)
        self._open = dict.fromkeys(filter(_REQUEST.match, is_open))

    def add(self, text: str, message: Message) -> bool:
        """Add a text of the user. Returns whether it is a request."""
        words = " ".join(own_words(text).split())
        if not words:
            self._is_interrupted = self._is_interrupted or is_interruption(text)
        if not words or is_summary(text):
            return False
        key = f"user t{message.turn}: {words}"
        latest = next(reversed(self._open), "")
        if _is_corrected(latest, key, is_interrupted=self._is_interrupted) or _is_command(latest, key):
            del self._open[latest], self.items[latest]
        repeated = self._keys.get(words, key)
        self._keys[words] = key
        if repeated != key:
            for known in (self.items, self._open):
                known.pop(repeated, None)
        self.items[key] = Item(text=key, status=Status.OPEN, sources=(message.position,))
        self._open[key] = None
        self._closed = {}
        self._is_interrupted = False
        return True

    def complete(self, answer: str, message: Message) -> None:
        """Mark earlier requests as done, and note the answer on the newest: the assistant ended its turn."""
        if is_no_answer(answer):
            return
        self.reopen()  # the newest text is the answer
        still_open, newest = dict[str, None](), ""
        for key in self._open:
            item = self.items[key]
            if item.sources and item.sources[-1] < message.position:
                self.items[key] = replace(item, status=Status.DONE)
                self._closed[key] = None
                newest = key
            else:
                still_open[key] = None
        self._open = still_open
        if newest and (words := " ".join(answer.split())):
            note = f"answered t{message.turn}: {words}"
            self.items[newest] = replace(self.items[newest], notes=(note,))

    def reopen(self) -> None:
        """Mark the requests that the latest answer completed as open: it was a call, or a call followed it.

        Models of OpenAI announce a call in a separate message.
        """
        if not self._closed:
            return
        for key in self._closed:
            self.items[key] = replace(self.items[key], status=Status.OPEN, notes=())
        self._open.update(self._closed)
        self._closed = {}


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
