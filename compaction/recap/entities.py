"""The entities of a recap: files with what was done to them, and the names met in them.

Which identifiers a later message needs was measured on real transcripts (docs/benchmarks.md): those that
the assistant itself used are eight times as likely to be used again as those that only stood in a tool's
output; the newer, the shorter the output, and the more its file was worked on, the likelier.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from compaction.recap.contents import Contents, Tally
from compaction.recap.values import Group, Item, Mention, group_of
from compaction.references import forms

OTHER_NAMES = "other names"

#: Names kept for the next recap to weigh again. Without, four in a hundred far references fewer were kept.
RESERVE = 400

#: A line with as many names takes only names that the assistant used: past that it is a heap.
LINE_NAMES = 100

Count = Callable[[str], int]

#: A name's age where nobody worked on its file, as a logarithm.
_COLD = 6.0


def rank(contents: Contents, end: int) -> list[Tally]:
    """All names, the most needed first. `end` is the position behind the evicted messages."""
    return sorted(contents.names.values(), key=lambda tally: _need(tally, contents, end), reverse=True)


def pack(
    contents: Contents, ranked: Iterable[Tally], *, shown: Collection[str], room: int, count: Count
) -> tuple[tuple[Item, ...], tuple[Mention, ...]]:
    """As many names as `room` tokens hold, the most needed first, each under its file; and a reserve of
    the most needed of the rest, which the next recap may find room for.

    `shown` are names that the prompt shows anyway. `count` tells the tokens of a text.
    """
    packing = _Packing(contents, count)
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
    """The names that are listed so far, each on the line of its file, in order of need."""

    def __init__(self, contents: Contents, count: Count) -> None:
        self.listed: dict[str, str] = {}  #: by a name, the line that tells it
        self._contents, self._count = contents, count
        self._lines: dict[str, dict[str, Tally]] = {}
        self._groups: set[tuple[str, Group]] = set()

    def is_full(self, name: str) -> bool:
        """Whether the line of a name has room only for names that the assistant used."""
        return len(self._lines.get(self._home(name), ())) >= LINE_NAMES

    def add(self, tally: Tally, room: int) -> int:
        """Lists a name, if it takes less than `room` tokens. The room that is left, 0 if it does not."""
        home = self._home(tally.name)
        told = forms(home)
        group = None if tally.name in told else (home, group_of(tally.name, tally.own))
        covered = self._covered(tally.name)
        cost = self._count(f" {tally.name}") if group else 0
        cost -= sum(self._count(f" {short}") for short in covered)
        if group and group not in self._groups:
            cost += self._count(group[1].label)
        if home not in self._lines:
            cost += self._count(self._line(home).render()) + 1
        if cost >= room:
            return 0
        for short in covered:
            del self._lines[self.listed[short]][short]
        if home not in self._lines:
            self._lines[home] = {}
            self.listed.update(dict.fromkeys(told, home))
        if group:
            self._groups.add(group)
            self._lines[home][tally.name] = tally
            self.listed.update(dict.fromkeys(forms(tally.name), home))
        return room - cost

    def items(self) -> tuple[Item, ...]:
        """The lines, the file that was worked on last first."""
        files = self._contents.files
        order = sorted(self._lines, key=lambda home: (home in files, self._line(home).sources), reverse=True)
        return tuple(
            replace(self._line(home), mentions=tuple(tally.mention() for tally in self._lines[home].values()))
            for home in order
        )

    def _covered(self, name: str) -> list[str]:
        """Listed names that `name` tells too: `pool.PoolError` tells `PoolError`."""
        return [form for form in forms(name) if form in self._lines.get(self.listed.get(form, ""), ())]

    def _home(self, name: str) -> str:
        """The line that a name belongs to: the path of its file, or the line of the names of no file."""
        files = self._contents.files
        home = name if name in files else self._contents.home.get(name, "")
        return home if home in files else OTHER_NAMES

    def _line(self, home: str) -> Item:
        return self._contents.files.get(home) or Item(text=home)


def _need(tally: Tally, contents: Contents, end: int) -> float:
    """How much a name is worth its room: the logarithm of the odds that a later message uses it, up to a
    constant, less half the logarithm of its length."""
    worth = tally.weight - 0.5 * math.log1p(end - tally.last) - 0.5 * math.log(2 + len(tally.name))
    if tally.own >= 0:
        return worth + math.log1p(tally.count) - 0.3 * math.log1p(end - tally.own)
    home = contents.files.get(contents.home.get(tally.name, ""))
    return worth - 0.25 * (math.log1p(end - home.sources[-1]) if home else _COLD)
