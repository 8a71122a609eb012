"""The entities of a recap: files, the operations on them, and the identifiers found in them.

The ranking was fitted to recorded sessions (docs/benchmarks.md) and compares odds with price: how likely a
later message uses a name, and how many tokens it takes. Names that the assistant used itself come back eight
times as often as those that only appeared in outputs. Among these, the odds rise with the number of messages
that mention the name, with recency, with work on its file, and with the brevity of the output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, count, islice, repeat
from operator import add, mul, sub

from compaction.identifiers.extract import forms, short_forms
from compaction.recap.contents import Contents
from compaction.recap.name_tally import NameTally
from compaction.recap.values import Group, Item, Mention, group_of
from compaction.sizes.tokens import NameSizes

OTHER_NAMES = "other names"

#: Number of names stored for the next recap. Without them, 4% fewer distant references were kept.
RESERVE = 400

#: Lines with this many names accept further names only if the assistant used them.
LINE_NAMES = 300

Count = Callable[[str], int]

#: The log odds that a name recurs if the assistant has used it.
_OWN = 1.25

#: The same for a round number: agents read files from round line numbers on, and set round limits.
_ROUND = 0.8

#: How much the price of a name, the logarithm of its tokens, counts against its odds. Many names that only
#: appeared in outputs compete for the room that the others leave.
_PRICE_SEEN, _PRICE_OWN = _PRICES = 0.9, 0.6

#: Few names take fewer tokens than this, so that no more than `room // _TOKENS_MIN` are counted.
_TOKENS_MIN = 2


class _Logs(dict[int, float]):
    """Logarithms of `number + offset`, each computed on first use."""

    def __init__(self, offset: int) -> None:
        super().__init__()
        self._offset = offset

    def __missing__(self, number: int) -> float:
        self[number] = found = math.log(number + self._offset)
        return found


_LOGS, _LENGTH_LOGS = _Logs(0), _Logs(2)


def rank(contents: Contents, end: int, *, room: int, sizes: NameSizes) -> dict[str, int]:
    """Return all names, the best use of `room` tokens first, with their tokens, or 0 if not counted.

    `end` is the position after the evicted messages. `sizes` are the tokens of names.
    """
    tally = contents.names
    names = list(tally.newest)
    needs = _needs(contents, names, _last_end(contents, end))
    prices = list(map(_PRICES.__getitem__, map(tally.own.__contains__, names)))
    # Computed in C, because there are thousands of names.
    scores = list(map(sub, needs, map(mul, prices, map(_LENGTH_LOGS.__getitem__, map(len, names)))))
    order = sorted(range(len(names)), key=scores.__getitem__, reverse=True)
    listed = max(1, room // _TOKENS_MIN)
    best, others = order[:listed], order[listed:]
    listed_names = list(map(names.__getitem__, best))
    sizes.count(listed_names)
    tokens = list(map(sizes.__getitem__, listed_names))
    paid = map(mul, map(prices.__getitem__, best), map(_LOGS.__getitem__, tokens))
    scores = list(map(sub, map(needs.__getitem__, best), paid))
    places = sorted(range(len(best)), key=scores.__getitem__, reverse=True)
    ranked = {listed_names[place]: tokens[place] for place in places}
    ranked.update(zip(map(names.__getitem__, others), repeat(0)))
    return ranked


def _last_end(contents: Contents, end: int) -> int:
    """Return the position after all messages of the contents.

    The previous recap may include later messages: a request is evicted after those that followed it.
    """
    names = contents.names
    mentioned = max(names.newest.values(), default=(0, 0))[0]
    touched = (max(file.sources, default=0) for file in contents.files.values())
    return max(end, mentioned, *names.own.values(), *touched, 0)


def _needs(contents: Contents, names: Sequence[str], end: int) -> list[float]:
    """Return for each name the logarithm of the odds that a later message uses it, up to a constant."""
    log1p, tally, home_of = math.log1p, contents.names, contents.home.get
    ages = {
        path: 0.18 * log1p(end - file.sources[-1]) for path, file in contents.files.items() if file.sources
    }
    # Thousands of names only appeared in outputs. Their odds are sums that are computed in C.
    mentioned = tally.newest.values()
    fading = {(last, among): -0.4 * log1p(end - last) - 0.5 * log1p(among) for last, among in set(mentioned)}
    near = {path: 1.3 - age for path, age in ages.items()}
    odds = map(add, map(log1p, map(tally.messages.__getitem__, names)), map(fading.__getitem__, mentioned))
    needs = list(map(add, odds, map(near.get, map(home_of, names, repeat("")), repeat(0.0))))
    for index in compress(count(), map(str.isdigit, names)):
        if names[index][-1] in "05":
            needs[index] += _ROUND
    for index in compress(count(), map(tally.own.__contains__, names)):
        name = names[index]
        needs[index] = _own_need(tally, name, end) + (0.75 - ages.get(home_of(name, ""), 0.75))
    return needs


def _own_need(tally: NameTally, name: str, end: int) -> float:
    """Return the same for a name that the assistant has used, without regard to its file."""
    last, _ = tally.newest[name]
    need = _OWN + 1.35 * math.log1p(tally.own_counts[name]) - 0.2 * math.log1p(tally.messages[name])
    return need - 0.35 * math.log1p(end - last) - 0.4 * math.log1p(end - tally.own[name])


@dataclass(slots=True)
class _Line:
    """The names on the line of a file."""

    file: Item
    known: frozenset[str]  #: the forms of the file's path
    tokens: int  #: of the line without names, or 0 if the recap has it already
    is_listed: bool = False
    names: dict[str, None] = field(default_factory=dict)  #: an ordered set
    groups: set[Group] = field(default_factory=set)  #: those of its names


class Packing:
    """As many names as fit, on the lines of their files, in the order of a ranking.

    `ranked` is the result of `rank`, `shown` are names that the prompt shows elsewhere. `count` counts the
    tokens of a string, `sizes` are those of names. `lines` are the texts of existing items.
    """

    def __init__(
        self,
        contents: Contents,
        ranked: Mapping[str, int],
        *,
        shown: Collection[str],
        count: Count,
        sizes: NameSizes,
        lines: Collection[str] = (),
    ) -> None:
        self._contents, self._ranked, self._shown = contents, ranked, shown
        self._count, self._sizes, self._existing = count, sizes, lines
        self._clear()

    def _clear(self) -> None:
        self._listed: dict[str, _Line] = {}  #: by name, the line that contains it
        self._lines: dict[str, _Line] = {}
        self._passed: list[str] = []  #: names that the prompt shows elsewhere
        self._next = 0  #: the index of the first name that was not considered

    def fill(self, room: int) -> None:
        """List the best names until `room` tokens are used.

        The tokens of the parts do not add up exactly to those of the whole recap. If it exceeds its cap, fill
        again with less room.
        """
        self._clear()
        listed, passed, sizes, own = self._listed, self._passed, self._sizes, self._contents.names.own
        used, self._next = 0, len(self._ranked)
        for index, (name, size) in enumerate(self._ranked.items()):
            if name in listed:
                continue
            line = self._line_of(name)
            if len(line.names) >= LINE_NAMES and name not in own:
                continue
            if name in self._shown:
                passed.append(name)
                if len(passed) == RESERVE:
                    self._next = index + 1
                    return
                continue
            shorter = short_forms(name)
            covered = self._covered(shorter) if shorter else ()
            is_shown = line.is_listed or name not in line.known
            if is_shown:
                used += (size or sizes[name]) + self._label_tokens(group_of(name, own.get(name, -1)), line)
            if not line.is_listed:
                used += line.tokens
            for short in covered:
                used -= sizes[short]
            if used >= room:
                self._next = index
                return
            self._list(name, line, shorter, covered, is_shown=is_shown)

    def _label_tokens(self, group: Group, line: _Line) -> int:
        """Return the tokens of the label of a group if the next name is its first on the line."""
        if group in line.groups:
            return 0
        line.groups.add(group)
        return self._count(group.label)

    def _list(
        self, name: str, line: _Line, shorter: Collection[str], covered: Collection[str], *, is_shown: bool
    ) -> None:
        """List a name on its line, instead of the shorter ones that it covers."""
        listed = self._listed
        for short in covered:
            del listed[short].names[short]
        if not line.is_listed:
            line.is_listed = True
            listed.update(dict.fromkeys(line.known, line))
        if is_shown:
            line.names[name] = None
            listed[name] = line
            for short in shorter:
                listed[short] = line

    def items(self) -> tuple[Item, ...]:
        """Return the lines, most recently changed file first."""
        files = self._contents.files
        listed = [line for line in self._lines.values() if line.is_listed]
        order = sorted(listed, key=lambda line: (line.file.text in files, line.file.sources), reverse=True)
        mentions = self._contents.names.mentions([name for line in order for name in line.names])
        return tuple(replace(line.file, mentions=tuple(islice(mentions, len(line.names)))) for line in order)

    def reserve(self) -> tuple[Mention, ...]:
        """Return the best of the other names, for the next recap."""
        left = list(self._passed)
        for name in islice(self._ranked, self._next, None):
            if len(left) == RESERVE:
                break
            if name in self._listed:
                continue
            line = self._line_of(name)
            if len(line.names) < LINE_NAMES or name in self._contents.names.own:
                left.append(name)
        return tuple(self._contents.names.mentions(left))

    def _line_of(self, name: str) -> _Line:
        """Return the line that a name belongs to: that of its file, or of `OTHER_NAMES`."""
        files = self._contents.files
        home = name if name in files else self._contents.home.get(name, OTHER_NAMES)
        file = files.get(home)
        if file is None:
            home = OTHER_NAMES
        line = self._lines.get(home)
        if line is None:
            file = file or Item(text=home)
            tokens = 0 if home in self._existing else self._count(file.render()) + 1
            line = self._lines[home] = _Line(file, forms(home), tokens)
        return line

    def _covered(self, names: Collection[str]) -> list[str]:
        """Return those of the names that are listed: `pool.PoolError` includes `PoolError`."""
        listed = self._listed
        return [name for name in names if name in listed and name in listed[name].names]
