"""The entities of a recap: files with what was done to them, and the names met in them.

Which identifiers a later message needs was measured on real transcripts (docs/compaction.md): those that
the assistant itself used are eight times as likely to be used again as those that only stood in a tool's
output; the newer, the shorter the output, and the more its file was worked on, the likelier.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from compaction.recap.ledger import Ledger, Tally
from compaction.recap.values import Item, Mention
from compaction.references import forms

OTHER_NAMES = "other names"

#: Names kept for the next recap to weigh again. Without, four in a hundred far references fewer were kept.
RESERVE = 400

#: A line with as many names takes only names that the assistant used: past that it is a heap.
LINE_NAMES = 100

Count = Callable[[str], int]
Lines = dict[str, dict[str, Tally]]  #: by the path or title of a line, its names in order of need

#: A name's age where nobody worked on its file, as a logarithm.
_COLD = 6.0


def rank(ledger: Ledger, end: int) -> list[Tally]:
    """All names, the most needed first. `end` is the position behind the evicted messages."""
    return sorted(ledger.names.values(), key=lambda tally: _need(tally, ledger, end), reverse=True)


def pack(
    ledger: Ledger, ranked: Iterable[Tally], *, shown: Collection[str], room: int, count: Count
) -> tuple[tuple[Item, ...], tuple[Mention, ...]]:
    """As many names as `room` tokens hold, the most needed first, each under its file; and a reserve of
    the most needed of the rest, which the next recap may find room for.

    `shown` are names that the prompt shows anyway. `count` tells the tokens of a text.
    """
    lines: dict[str, dict[str, Tally]] = {}
    listed: dict[str, str] = {}  # name -> its line
    reserve: list[Mention] = []
    for tally in ranked:
        if tally.name in listed:
            continue
        if tally.own < 0 and len(lines.get(_home(tally.name, ledger), ())) >= LINE_NAMES:
            continue
        is_shown = tally.name in shown
        cost = 0 if is_shown or not room else _cost(tally, lines, listed, ledger, count)
        if is_shown or cost >= room:
            reserve.append(tally.mention())
            room = room if is_shown else 0
            if len(reserve) == RESERVE:
                break
            continue
        room -= cost
        _list(tally, lines, listed, ledger)
    order = sorted(lines, key=lambda home: (home in ledger.files, _line(home, ledger).sources), reverse=True)
    items = (
        replace(_line(home, ledger), mentions=tuple(tally.mention() for tally in lines[home].values()))
        for home in order
    )
    return tuple(items), tuple(reserve)


def _cost(
    tally: Tally,
    lines: Lines,
    listed: Mapping[str, str],
    ledger: Ledger,
    count: Count,
) -> int:
    """Tokens that listing a name adds: itself, its file's line if that is new, less what it covers."""
    home = _home(tally.name, ledger)
    cost = 0 if tally.name in forms(home) else count(f" {tally.name}")
    if home not in lines:
        cost += count(_line(home, ledger).render()) + 2
    return cost - sum(count(f" {short}") for short in _covered(tally.name, lines, listed))


def _list(tally: Tally, lines: Lines, listed: dict[str, str], ledger: Ledger) -> None:
    home = _home(tally.name, ledger)
    for short in _covered(tally.name, lines, listed):
        del lines[listed[short]][short]
    if home not in lines:
        lines[home] = {}
        listed.update(dict.fromkeys(forms(home), home))
    if tally.name not in forms(home):
        lines[home][tally.name] = tally
        listed.update(dict.fromkeys(forms(tally.name), home))


def _covered(name: str, lines: Lines, listed: Mapping[str, str]) -> list[str]:
    """Listed names that `name` tells too: `pool.PoolError` tells `PoolError`."""
    return [short for short in forms(name) if short in lines.get(listed.get(short, ""), ())]


def _home(name: str, ledger: Ledger) -> str:
    """The line that a name belongs to: the path of its file, or the line of the names of no file."""
    home = name if name in ledger.files else ledger.home.get(name, "")
    return home if home in ledger.files else OTHER_NAMES


def _line(home: str, ledger: Ledger) -> Item:
    return ledger.files.get(home) or Item(text=home)


def _need(tally: Tally, ledger: Ledger, end: int) -> float:
    """How much a name is worth its room: the logarithm of the odds that a later message uses it, up to a
    constant, less half the logarithm of its length."""
    worth = tally.weight - 0.5 * math.log1p(end - tally.last) - 0.5 * math.log(2 + len(tally.name))
    if tally.own >= 0:
        return worth + math.log1p(tally.count) - 0.3 * math.log1p(end - tally.own)
    home = ledger.files.get(ledger.home.get(tally.name, ""))
    return worth - 0.25 * (math.log1p(end - home.sources[-1]) if home else _COLD)
