"""The entities of a recap: files, the operations on them, and the identifiers found in them.

The ranking is based on measurements of real transcripts (docs/benchmarks.md): identifiers that the assistant
used are eight times as likely to be used again as those that appeared only in a tool's output. The
probability also rises with recency, with the brevity of the output, and with the amount of work on the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from compaction.recap.contents import Contents, Tally
from compaction.recap.values import Group, Item, Mention, group_of
from compaction.references import forms

OTHER_NAMES = "other names"

#: Number of names stored for the next recap. Without them, 4% fewer distant references were kept.
RESERVE = 400

#: Lines with this many names accept further names only if the assistant used them.
LINE_NAMES = 100

Count = Callable[[str], int]

#: The logarithmic age of a name whose file was not worked on.
_COLD = 6.0


def rank(contents: Contents, end: int) -> list[Tally]:
    """Return all names, most likely needed first. `end` is the position after the evicted messages."""
    # The previous recap may cover later messages, because a request is evicted after the messages following
    # it.
    mentioned = (max(tally.last, tally.own) for tally in contents.names.values())
    touched = (max(file.sources, default=0) for file in contents.files.values())
    end = max(end, *mentioned, *touched, 0)
    return sorted(contents.names.values(), key=lambda tally: _need(tally, contents, end), reverse=True)


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
    """Return the value of a name relative to its size.

    The logarithm of the odds that a later message uses it, up to a constant, minus half the logarithm of its
    length.
    """
    worth = tally.weight - 0.5 * math.log1p(end - tally.last) - 0.5 * math.log(2 + len(tally.name))
    if tally.own >= 0:
        return worth + math.log1p(tally.count) - 0.3 * math.log1p(end - tally.own)
    home = contents.files.get(contents.home.get(tally.name, ""))
    return worth - 0.25 * (math.log1p(end - home.sources[-1]) if home else _COLD)
