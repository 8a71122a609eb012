"""The deterministic recap: what to keep of the evicted messages, and how it fits its cap."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from compaction.messages import Message
from compaction.recap.entities import pack
from compaction.recap.ledger import Ledger
from compaction.recap.values import Item, Recap, Status
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
    return replace(recap, entities=pack(ledger, shown=shown, end=end, room=room, counter=counter))


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


def _clip(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"
