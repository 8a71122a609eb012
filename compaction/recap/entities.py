"""The entities of a recap: files with what was done to them, and the names met in them.

Which identifiers a later message needs was measured on real transcripts (docs/compaction.md): those that
the assistant itself used are ten times as likely to be used again as those that only stood in a tool's
output; the newer, the shorter the output, and the more its file was worked on, the likelier.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

from compaction.recap.ledger import Ledger
from compaction.recap.values import Item, Mention
from compaction.references import references
from compaction.tokens import TokenCounter

OTHER_NAMES = "other names"

#: Names kept for the next recap. With 100, two in a hundred of the far references fewer were kept.
RESERVE = 200

#: A line with as many names takes only names that the assistant used: past that it is a heap.
LINE_NAMES = 80

Lines = dict[str, dict[str, Mention]]  #: by the path or title of a line, its names in order of need

#: A name's age where nobody worked on its file, as a logarithm.
_COLD = 6.0


def pack(
    ledger: Ledger, *, shown: Collection[str], end: int, room: int, counter: TokenCounter
) -> tuple[tuple[Item, ...], tuple[Mention, ...]]:
    """As many names as `room` tokens hold, the most needed first, each under its file; and a reserve of
    the most needed of the rest, which the next recap may find room for.

    `shown` are names that the prompt shows anyway. `end` is the position behind the evicted messages.
    """
    lines: dict[str, dict[str, Mention]] = {}
    listed: dict[str, str] = {}  # name -> its line
    reserve: list[Mention] = []
    for mention in sorted(ledger.names.values(), key=lambda m: _need(m, ledger, end), reverse=True):
        if mention.name in listed:
            continue
        if mention.own < 0 and len(lines.get(_home(mention.name, ledger), ())) >= LINE_NAMES:
            continue
        cost = _cost(mention, lines, listed, ledger, counter)
        if mention.name in shown or cost > room:
            reserve.append(mention)
            room = room if mention.name in shown else 0
            if len(reserve) == RESERVE:
                break
            continue
        room -= cost
        _list(mention, lines, listed, ledger)
    order = sorted(lines, key=lambda home: (home in ledger.files, _line(home, ledger).sources), reverse=True)
    items = (replace(_line(home, ledger), mentions=tuple(lines[home].values())) for home in order)
    return tuple(items), tuple(reserve)


def _cost(
    mention: Mention,
    lines: Lines,
    listed: Mapping[str, str],
    ledger: Ledger,
    counter: TokenCounter,
) -> int:
    """Tokens that listing a name adds: itself, its file's line if that is new, less what it covers."""
    home = _home(mention.name, ledger)
    cost = 0 if mention.name in references(home) else counter.count(f" {mention.name}")
    if home not in lines:
        cost += counter.count(_line(home, ledger).render()) + 2
    return cost - sum(counter.count(f" {short}") for short in _covered(mention.name, lines, listed))


def _list(mention: Mention, lines: Lines, listed: dict[str, str], ledger: Ledger) -> None:
    home = _home(mention.name, ledger)
    for short in _covered(mention.name, lines, listed):
        del lines[listed[short]][short]
    if home not in lines:
        lines[home] = {}
        listed.update(dict.fromkeys(references(home), home))
    if mention.name not in references(home):
        lines[home][mention.name] = mention
        listed.update(dict.fromkeys(references(mention.name), home))


def _covered(name: str, lines: Lines, listed: Mapping[str, str]) -> list[str]:
    """Listed names that `name` tells too: `pool.PoolError` tells `PoolError`."""
    return [short for short in references(name) if short in lines.get(listed.get(short, ""), ())]


def _home(name: str, ledger: Ledger) -> str:
    """The line that a name belongs to: the path of its file, or the line of the names of no file."""
    home = name if name in ledger.files else ledger.home.get(name, "")
    return home if home in ledger.files else OTHER_NAMES


def _line(home: str, ledger: Ledger) -> Item:
    return ledger.files.get(home) or Item(text=home)


def _need(mention: Mention, ledger: Ledger, end: int) -> float:
    """How much a name is worth its room: the logarithm of the odds that a later message uses it, up to a
    constant, less half the logarithm of its length."""
    worth = mention.weight - 0.5 * math.log1p(end - mention.last) - 0.5 * math.log(2 + len(mention.name))
    if mention.own >= 0:
        return worth + math.log1p(mention.count) - 0.3 * math.log1p(end - mention.own)
    home = ledger.files.get(ledger.home.get(mention.name, ""))
    return worth - 0.25 * (math.log1p(end - home.sources[-1]) if home else _COLD)
