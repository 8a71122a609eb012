"""The deterministic recap: what to keep of the evicted messages, and how it fits its cap.

Which identifiers a later message needs was measured on real transcripts: those that the assistant itself
used are ten times as likely to be used again as those that only stood in a tool's output, and the newer
the likelier. So entities are ranked by that, and what the kept messages still show takes no room.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from compaction.messages import Message
from compaction.recap.ledger import Ledger
from compaction.recap.values import Item, Mention, Recap, Status
from compaction.references import references
from compaction.tokens import TokenCounter

#: Shares of the cap that the sections may take before entities take what is left.
REQUEST_SHARE = 0.30
DECISION_SHARE = 0.12
FACT_SHARE = 0.16

#: A request is clipped to no less than this, however many there are.
_MIN_REQUEST = 80
_CHARACTERS_PER_TOKEN = 4


def extract(
    evicted: Sequence[Message],
    *,
    counter: TokenCounter,
    cap_tokens: int,
    previous: Recap | None = None,
    visible: Collection[str] = frozenset(),
) -> Recap:
    """The recap of `evicted`, messages in order of time that follow those of `previous`.

    `visible` are the identifiers that the rest of the prompt still shows. The recap's text takes at most
    `cap_tokens`, save that the requests of users are always there, clipped.
    """
    ledger = Ledger()
    if previous:
        ledger.fold(previous)
    for message in evicted:
        ledger.observe(message)
    turns = [message.turn for message in evicted]
    recap = Recap(
        first_turn=previous.first_turn if previous else min(turns, default=0),
        last_turn=max(turns, default=previous.last_turn if previous else 0),
        open_items=_requests(ledger, int(cap_tokens * REQUEST_SHARE)),
        decisions=_newest(ledger.decisions.values(), int(cap_tokens * DECISION_SHARE), counter),
        facts=_newest(ledger.commands.values(), int(cap_tokens * FACT_SHARE), counter),
    )
    text = recap.render()
    room = cap_tokens - counter.count(text)
    shown = references(text).union(visible)
    end = evicted[-1].position + 1 if evicted else 0
    return replace(recap, entities=_entities(ledger, shown, end, room, counter))


def _requests(ledger: Ledger, cap_tokens: int) -> tuple[Item, ...]:
    """Every request, the longest clipped so far that all fit."""
    items = list(ledger.requests.values())
    room = cap_tokens * _CHARACTERS_PER_TOKEN
    size = max((len(item.text) for item in items), default=0)
    while size > _MIN_REQUEST and sum(min(len(item.text), size) for item in items) > room:
        size = size * 3 // 4
    return tuple(replace(item, text=_clip(item.text, max(size, _MIN_REQUEST))) for item in items)


def _newest(items: Iterable[Item], cap_tokens: int, counter: TokenCounter) -> tuple[Item, ...]:
    """As many of the newest items as fit, open ones first, in order of time."""
    by_need = sorted(items, key=lambda item: (item.status is Status.OPEN, item.sources), reverse=True)
    kept, room = [], cap_tokens
    for item in by_need:
        room -= counter.count(item.render()) + 1
        if room < 0:
            break
        kept.append(item)
    return tuple(sorted(kept, key=lambda item: item.sources))


def _entities(
    ledger: Ledger, shown: Collection[str], end: int, room: int, counter: TokenCounter
) -> tuple[Item, ...]:
    """Files with what was done to them and the names met in them, then the names of no file."""
    ranked = sorted(
        (mention for mention in ledger.names.values() if mention.name not in shown),
        key=lambda mention: _need(mention, end),
        reverse=True,
    )
    lines: dict[str, list[Mention]] = {}
    listed: set[str] = set()
    for mention in ranked:
        if mention.name in listed:
            continue
        home = mention.name if mention.name in ledger.files else ledger.home.get(mention.name, "")
        cost = counter.count(", " + mention.name)
        if home not in lines:
            head = ledger.files[home].render() if home in ledger.files else "- other names"
            cost = counter.count(head) + 1 + (cost if mention.name != home else 0)
        if cost > room:
            break
        room -= cost
        if home not in lines:
            lines[home] = []
            listed.update(references(home))
        if mention.name not in listed:
            lines[home].append(mention)
    return tuple(
        replace(ledger.files.get(home, Item(text=home or "other names")), mentions=tuple(names))
        for home, names in lines.items()
    )


def _need(mention: Mention, end: int) -> float:
    """How likely a later message names it: the logarithm of odds, up to a constant."""
    age = math.log1p(end - mention.last)
    own_age = math.log1p(end - mention.own) if mention.own >= 0 else 8.0
    return -0.6 * age - 0.25 * own_age + (1.0 if mention.own >= 0 else 0.0)


def _clip(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"
