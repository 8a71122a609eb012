"""The entities of a recap: files with what was done to them, and the names met in them.

Which identifiers a later message needs was measured on real transcripts (docs/compaction.md): those that
the assistant itself used are ten times as likely to be used again as those that only stood in a tool's
output; the newer, the shorter the output, and the more its file was worked on, the likelier.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

from compaction.recap.ledger import Ledger
from compaction.recap.values import Item, Mention
from compaction.references import references
from compaction.tokens import TokenCounter

OTHER_NAMES = "other names"

#: A name's age where nobody worked on its file, as a logarithm.
_COLD = 6.0


def pack(
    ledger: Ledger, *, shown: Collection[str], end: int, room: int, counter: TokenCounter
) -> tuple[Item, ...]:
    """As many names as `room` tokens hold, the most needed first, each under its file.

    `shown` are names that the prompt shows anyway. `end` is the position behind the evicted messages.
    """
    lines: dict[str, dict[str, Mention]] = {}
    listed: dict[str, str] = {}  # name -> its line
    for mention in _ranked(ledger, shown, end):
        name = mention.name
        if name in listed:
            continue
        home = name if name in ledger.files else ledger.home.get(name, OTHER_NAMES)
        home = home if home in ledger.files else OTHER_NAMES
        cost = counter.count(f" {name}") if name != home else 0
        if home not in lines:
            cost += counter.count(_line(home, ledger).render()) + 2
        covered = [short for short in references(name) if short in lines.get(listed.get(short, ""), ())]
        cost -= sum(counter.count(f" {short}") for short in covered)
        if cost > room:
            break
        room -= cost
        for short in covered:  # the long form tells it too
            del lines[listed[short]][short]
        if home not in lines:
            lines[home] = {}
            listed.update(dict.fromkeys(references(home), home))
        if name != home:
            lines[home][name] = mention
            listed.update(dict.fromkeys(references(name), home))
    order = sorted(lines, key=lambda home: (home in ledger.files, _line(home, ledger).sources), reverse=True)
    return tuple(replace(_line(home, ledger), mentions=tuple(lines[home].values())) for home in order)


def _line(home: str, ledger: Ledger) -> Item:
    return ledger.files.get(home) or Item(text=home)


def _ranked(ledger: Ledger, shown: Collection[str], end: int) -> list[Mention]:
    wanted = (mention for mention in ledger.names.values() if mention.name not in shown)
    return sorted(wanted, key=lambda mention: _need(mention, ledger, end), reverse=True)


def _need(mention: Mention, ledger: Ledger, end: int) -> float:
    """How much a name is worth its room: the logarithm of the odds that a later message uses it, up to a
    constant, less half the logarithm of its length."""
    worth = mention.weight - 0.5 * math.log1p(end - mention.last) - 0.5 * math.log(2 + len(mention.name))
    if mention.own >= 0:
        return worth + math.log1p(mention.count) - 0.3 * math.log1p(end - mention.own)
    home = ledger.files.get(ledger.home.get(mention.name, ""))
    return worth - 0.25 * (math.log1p(end - home.sources[-1]) if home else _COLD)
