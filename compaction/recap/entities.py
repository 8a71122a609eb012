"""The entities of a recap: files, the operations on them, and the identifiers found in them.

The ranking was fitted to recorded sessions (docs/benchmarks.md) and compares odds with price: how likely a
later message uses a name, and how many tokens it takes. Names that the assistant used itself come back eight
times as often as those that only appeared in outputs. Among these, the odds rise with the number of messages
that mention the name, with recency, with work on its file, and with the brevity of the output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from operator import itemgetter

from compaction.recap.contents import Contents, Tally
from compaction.recap.values import Group, Item, Mention, group_of
from compaction.references import forms

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

_first = itemgetter(0)


def rank(contents: Contents, end: int, *, room: int, count: Count) -> list[Tally]:
    """Return all names, the best use of `room` tokens first. `end` is the position after the evicted ones."""
    # The previous recap may include later messages: a request is evicted after those that followed it.
    mentioned = (max(tally.last, tally.own) for tally in contents.names.values())
    touched = (max(file.sources, default=0) for file in contents.files.values())
    end = max(end, *mentioned, *touched, 0)
    rough = [
        (need - _price(tally) * math.log(2 + len(tally.name)), need, tally)
        for tally in contents.names.values()
        for need in (_need(tally, contents, end),)
    ]
    rough.sort(key=_first, reverse=True)
    listed = max(1, room // _TOKENS_MIN)
    best = [(need - _price(t) * math.log(count(f" {t.name}")), t) for _, need, t in rough[:listed]]
    best.sort(key=_first, reverse=True)
    return [tally for _, tally in best] + [tally for _, _, tally in rough[listed:]]


def pack(
    contents: Contents,
    ranked: Iterable[Tally],
    *,
    shown: Collection[str],
    room: int,
    count: Count,
    lines: Collection[str] = (),
) -> tuple[tuple[Item, ...], tuple[Mention, ...]]:
    """Return items with as many names as fit in `room` tokens, by file, and a reserve of other names.

    Names are added in the order of `ranked`. `shown` are names that the prompt shows elsewhere. The reserve
    is for the next recap. `count` counts the tokens of a string. `lines` are the texts of existing items.
    """
    packing = _Packing(contents, count, lines)
    reserve: list[Mention] = []
    for tally in ranked:
        if tally.name in packing.listed or (tally.own < 0 and packing.is_full(tally.name)):
            continue
        if room and tally.name not in shown:
            room = packing.add(tally, room)
            if room:
                continue
        reserve.append(tally.mention())
        if len(reserve) == RESERVE:
            break
    return packing.items(), tuple(reserve)


def _price(tally: Tally) -> float:
    return _PRICE_SEEN if tally.own < 0 else _PRICE_OWN


class _Packing:
    """The names listed so far, on the lines of their files, in ranking order."""

    def __init__(self, contents: Contents, count: Count, existing: Collection[str]) -> None:
        self.listed: dict[str, str] = {}  #: by name, the line that contains it
        self._contents, self._count, self._existing = contents, count, existing
        self._lines: dict[str, dict[str, Tally]] = {}
        self._groups: set[tuple[str, Group]] = set()

    def is_full(self, name: str) -> bool:
        """Whether the line of a name accepts only names that the assistant used."""
        return len(self._lines.get(self._home(name), ())) >= LINE_NAMES

    def add(self, tally: Tally, room: int) -> int:
        """List a name if it fits in `room` tokens. Return the remaining room, or 0 if it was not listed."""
        home = self._home(tally.name)
        known = forms(home)
        group = None if tally.name in known else (home, group_of(tally.name, tally.own))
        covered = self._covered(tally.name)
        cost = self._count(f" {tally.name}") if group else 0
        cost -= sum(self._count(f" {short}") for short in covered)
        if group and group not in self._groups:
            cost += self._count(group[1].label)
        if home not in self._lines and home not in self._existing:
            cost += self._count(self._line(home).render()) + 1
        if cost >= room:
            return 0
        for short in covered:
            del self._lines[self.listed[short]][short]
        if home not in self._lines:
            self._lines[home] = {}
            self.listed.update(dict.fromkeys(known, home))
        if group:
            self._groups.add(group)
            self._lines[home][tally.name] = tally
            self.listed.update(dict.fromkeys(forms(tally.name), home))
        return room - cost

    def items(self) -> tuple[Item, ...]:
        """Return the lines, most recently changed file first."""
        files = self._contents.files
        order = sorted(self._lines, key=lambda home: (home in files, self._line(home).sources), reverse=True)
        return tuple(
            replace(self._line(home), mentions=tuple(tally.mention() for tally in self._lines[home].values()))
            for home in order
        )

    def _covered(self, name: str) -> list[str]:
        """Return listed names that `name` includes: `pool.PoolError` includes `PoolError`."""
        return [form for form in forms(name) if form in self._lines.get(self.listed.get(form, ""), ())]

    def _home(self, name: str) -> str:
        """Return the line that a name belongs to: the path of its file, or `OTHER_NAMES`."""
        files = self._contents.files
        home = name if name in files else self._contents.home.get(name, "")
        return home if home in files else OTHER_NAMES

    def _line(self, home: str) -> Item:
        return self._contents.files.get(home) or Item(text=home)


def _need(tally: Tally, contents: Contents, end: int) -> float:
    """Return the logarithm of the odds that a later message uses a name, up to a constant."""
    age = math.log1p(end - tally.last)
    home = contents.files.get(contents.home.get(tally.name, ""))
    home_age = 0.18 * math.log1p(end - home.sources[-1]) if home else 0.0
    if tally.own < 0:
        odds = math.log1p(tally.messages) - 0.4 * age - 0.5 * math.log1p(tally.among)
        odds += _ROUND if tally.name.isdigit() and tally.name[-1] in "05" else 0.0
        return odds + (1.3 - home_age if home else 0.0)
    odds = 1.35 * math.log1p(tally.count) - 0.2 * math.log1p(tally.messages)
    odds -= 0.35 * age + 0.4 * math.log1p(end - tally.own)
    return odds + (0.75 - home_age if home else 0.0) + _OWN
