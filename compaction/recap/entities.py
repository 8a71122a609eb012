"""The entities of a recap: files, the operations on them, and the identifiers found in them.

The ranking was fitted to recorded sessions (docs/benchmarks.md) and compares odds with price: how likely a
later message uses a name, and how many tokens it takes. Names that the assistant used itself come back eight
times as often as those that only appeared in outputs. Among these, the odds rise with the number of messages
that mention the name, with recency, with work on its file, and with the brevity of the output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from compaction.recap.contents import Contents
from compaction.recap.values import Group, Item, Mention, group_of
from compaction.references import forms
from compaction.tokens import NameSizes

OTHER_NAMES = "other names"

#: Number of names stored for the next recap. Without them, 4% fewer distant references were kept.
RESERVE = 400

#: Lines with this many names accept further names only if the assistant used them.
LINE_NAMES = 300

Count = Callable[[str], int]

#: The log odds that a name recurs if the assistant has used it.
_OWN = 1.25

#: How much the price of a name, the logarithm of its tokens, counts against its odds. Many names that only
#: appeared in outputs compete for the room that the others leave.
_PRICE_OWN, _PRICE_SEEN = 0.6, 0.9

#: The same for a round number: agents read files from round line numbers on, and set round limits.
_ROUND = 0.8

#: Few names take fewer tokens than this, so that no more than `room // _TOKENS_MIN` are counted.
_TOKENS_MIN = 2


def rank(contents: Contents, end: int, *, room: int, sizes: NameSizes) -> dict[str, int]:
    """Return all names, the best use of `room` tokens first, with their tokens, or 0 if not counted.

    `end` is the position after the evicted messages. `sizes` are the tokens of names.
    """
    names, log = list(contents.names.newest), math.log
    needs, prices = _needs(contents, _last_end(contents, end))
    lengths = map(len, names)
    scores = [
        need - price * log(2 + length) for length, need, price in zip(lengths, needs, prices, strict=True)
    ]
    order = sorted(range(len(names)), key=scores.__getitem__, reverse=True)
    listed = max(1, room // _TOKENS_MIN)
    best, others = order[:listed], order[listed:]
    listed_names = [names[index] for index in best]
    sizes.count(listed_names)
    tokens = [sizes[name] for name in listed_names]
    scores = [needs[index] - prices[index] * log(size) for index, size in zip(best, tokens, strict=True)]
    places = sorted(range(len(best)), key=scores.__getitem__, reverse=True)
    ranked = {listed_names[place]: tokens[place] for place in places}
    ranked.update((names[index], 0) for index in others)
    return ranked


def _last_end(contents: Contents, end: int) -> int:
    """Return the position after all messages of the contents.

    The previous recap may include later messages: a request is evicted after those that followed it.
    """
    names = contents.names
    mentioned = max(names.newest.values(), default=(0, 0))[0]
    touched = (max(file.sources, default=0) for file in contents.files.values())
    return max(end, mentioned, *names.own.values(), *touched, 0)


def _needs(contents: Contents, end: int) -> tuple[list[float], list[float]]:
    """Return for each name the logarithm of the odds that a later message uses it, up to a constant, and how
    much its price counts against them.
    """
    log1p, names, home_of = math.log1p, contents.names, contents.home.get
    own, own_counts, messages = names.own, names.own_counts, names.messages
    ages = {
        path: 0.18 * log1p(end - file.sources[-1]) for path, file in contents.files.items() if file.sources
    }
    needs, prices = [], []
    newest = None
    for name, mentioned in names.newest.items():
        if mentioned is not newest:  # names of one message often follow each other
            newest = last, among = mentioned
            age, crowd = log1p(end - last), 0.5 * log1p(among)
        home_age = ages.get(home_of(name, ""))
        if name not in own:
            odds = log1p(messages[name]) - 0.4 * age - crowd
            if name[-1] in "05" and name.isdigit():
                odds += _ROUND
            needs.append(odds if home_age is None else odds + (1.3 - home_age))
            prices.append(_PRICE_SEEN)
        else:
            odds = 1.35 * log1p(own_counts[name]) - 0.2 * log1p(messages[name])
            odds -= 0.35 * age + 0.4 * log1p(end - own[name])
            needs.append((odds if home_age is None else odds + (0.75 - home_age)) + _OWN)
            prices.append(_PRICE_OWN)
    return needs, prices


@dataclass(slots=True)
class _Line:
    """The names on the line of a file."""

    file: Item
    known: frozenset[str]  #: the forms of the file's path
    tokens: int  #: of the line without names, or 0 if the recap has it already
    names: dict[str, None] = field(default_factory=dict)  #: an ordered set
    groups: set[Group] = field(default_factory=set)  #: those of its names


class _Added(NamedTuple):
    """A name that was listed: its place in the ranking, and the room that all names so far take."""

    place: int
    name: str
    line: _Line
    forms: frozenset[str]
    covered: Sequence[str]  #: names that it makes redundant
    is_shown: bool  #: whether the line shows it as one of its names
    used: int


class Packing:
    """As many names as fit, on the lines of their files, in the order of a ranking.

    `ranked` is the result of `rank`, `shown` are names that the prompt shows elsewhere. `count` counts the
    tokens of a string, `sizes` are those of names. `lines` are the texts of existing items. The tokens of the
    parts do not add up exactly to those of the whole recap, so `shorten` can reduce the room afterwards: that
    removes the names that were added last.
    """

    def __init__(
        self,
        contents: Contents,
        ranked: Mapping[str, int],
        *,
        shown: Collection[str],
        room: int,
        count: Count,
        sizes: NameSizes,
        lines: Collection[str] = (),
    ) -> None:
        self._contents, self._ranked, self._shown = contents, list(ranked), shown
        self._count, self._sizes, self._existing = count, sizes, lines
        self._listed: dict[str, _Line] = {}  #: by name, the line that contains it
        self._lines: dict[str, _Line] = {}
        self._added: list[_Added] = []
        self._passed: list[tuple[int, str]] = []  #: names that the prompt shows elsewhere
        self._next = 0  #: the index of the first name that was not considered
        self._pack(room)

    def shorten(self, room: int) -> None:
        """Remove the names that were added last, until the others fit in `room` tokens."""
        fitting = next((i for i, added in enumerate(self._added) if added.used >= room), None)
        if fitting is None:
            return
        self._next = self._added[fitting].place
        del self._added[fitting:]
        self._passed = [passed for passed in self._passed if passed[0] < self._next]
        for line in self._lines.values():
            line.names.clear()
        self._listed, self._lines = {}, {}
        for added in self._added:
            self._list(added)

    def items(self) -> tuple[Item, ...]:
        """Return the lines, most recently changed file first."""
        files = self._contents.files
        order = sorted(
            self._lines.values(), key=lambda line: (line.file.text in files, line.file.sources), reverse=True
        )
        mentions = self._contents.names.mentions([name for line in order for name in line.names])
        return tuple(line.file.with_mentions(tuple(islice(mentions, len(line.names)))) for line in order)

    def reserve(self) -> tuple[Mention, ...]:
        """Return the best of the other names, for the next recap."""
        left = [name for _, name in self._passed]
        for index in range(self._next, len(self._ranked)):
            if len(left) == RESERVE:
                break
            name = self._ranked[index]
            if name in self._listed:
                continue
            line = self._lines.get(self._home(name))
            if line is None or not self._is_full(line, name):
                left.append(name)
        return tuple(self._contents.names.mentions(left))

    def _pack(self, room: int) -> None:
        listed, lines, shown, passed = self._listed, self._lines, self._shown, self._passed
        home_of, own = self._home, self._contents.names.own
        used = 0
        for index, name in enumerate(self._ranked):
            if len(passed) == RESERVE:
                self._next = index
                return
            if name in listed:
                continue
            home = home_of(name)
            line = lines.get(home)
            if line is not None and len(line.names) >= LINE_NAMES and name not in own:
                continue
            if name in shown:
                passed.append((index, name))
                continue
            added = self._priced(index, name, line or self._new_line(home), used)
            if added.used >= room:
                self._next = index
                return
            used = added.used
            self._added.append(added)
            self._list(added)
        self._next = len(self._ranked)

    def _is_full(self, line: _Line, name: str) -> bool:
        """Whether a line accepts only names that the assistant used."""
        return len(line.names) >= LINE_NAMES and name not in self._contents.names.own

    def _new_line(self, home: str) -> _Line:
        file = self._contents.files.get(home) or Item(text=home)
        tokens = 0 if home in self._existing else self._count(file.render()) + 1
        return _Line(file, forms(home), tokens)

    def _priced(self, index: int, name: str, line: _Line, used: int) -> _Added:
        """Return the name with the room that it takes in addition to `used`."""
        home = line.file.text
        if home not in self._lines:
            used += line.tokens
        own_forms = forms(name)
        # A name with one form is not listed and therefore includes no listed name.
        covered = self._covered(own_forms) if len(own_forms) > 1 else ()
        for short in covered:
            used -= self._sizes[short]
        is_shown = name not in line.known
        if is_shown:
            used += self._sizes[name]
            group = group_of(name, self._contents.names.own.get(name, -1))
            if group not in line.groups:
                line.groups.add(group)
                used += self._count(group.label)
        return _Added(index, name, line, own_forms, covered, is_shown, used)

    def _list(self, added: _Added) -> None:
        line = added.line
        for short in added.covered:
            del self._listed[short].names[short]
        if line.file.text not in self._lines:
            self._lines[line.file.text] = line
            self._listed.update(dict.fromkeys(line.known, line))
        if added.is_shown:
            line.names[added.name] = None
            for form in added.forms:
                self._listed[form] = line

    def _covered(self, names: Collection[str]) -> list[str]:
        """Return those of the names that are listed: `pool.PoolError` includes `PoolError`."""
        listed = self._listed
        return [name for name in names if name in listed and name in listed[name].names]

    def _home(self, name: str) -> str:
        """Return the line that a name belongs to: the path of its file, or `OTHER_NAMES`."""
        files = self._contents.files
        home = name if name in files else self._contents.home.get(name, "")
        return home if home in files else OTHER_NAMES
