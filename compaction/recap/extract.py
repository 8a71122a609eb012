"""The deterministic recap: select the most important contents of evicted messages within a cap.

`extract` builds a complete recap. `complete` adds identifiers to a model's recap that later messages are
likely to need.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from compaction.identifiers.extract import references
from compaction.messages import Message
from compaction.recap.commands import is_failure, is_lookup
from compaction.recap.contents import Contents
from compaction.recap.entities import Packing, rank
from compaction.recap.handles import HANDLE_SHARE, Handled, handles_of, merged, with_handles
from compaction.recap.statements import choose
from compaction.recap.values import Item, Recap, Status
from compaction.shell.effects import is_inspection
from compaction.shortening import shortened
from compaction.sizes.tokens import TokenCounter, name_sizes

#: Shares of the cap for the other sections; entities take the rest.
REQUEST_SHARE = 0.30
DECISION_SHARE = 0.12
FACT_SHARE = 0.06
#: Minimum of tokens for facts, so that a small recap lists several, and its maximum share of the cap.
_MIN_FACTS, _MIN_FACTS_SHARE = 100, 0.12

#: Share of the cap for the sections of a conversation without tools: its names have no files to belong to.
PROSE_SHARE = 0.85

#: Share of the cap for the latest answer.
ANSWER_SHARE = 0.06

#: Requests are never clipped further than this (characters).
_MIN_REQUEST = 80
#: Longer requests contain pasted data (characters). What the user wants may follow it.
_PASTED = 4_000
_GAP = " … "
_CHARACTERS_PER_TOKEN = 4
_TITLE_TOKENS = 4

#: Evicted messages that a recap is extracted from, the newest ones. Those before them would rank last.
_MOST_MESSAGES = 10_000

#: Number of messages after which a failed command that was not run again no longer counts as open.
_GIVEN_UP_AFTER = 40

#: Open items are ranked as if they were this many messages newer.
_OPEN_BONUS = 40


def extract(
    evicted: Sequence[Message],
    *,
    counter: TokenCounter,
    cap_tokens: int,
    previous: Recap | None = None,
    visible: Collection[str] = frozenset(),
    handles: Sequence[Handled] = (),
    later: Sequence[Message] = (),
) -> Recap:
    """Return the recap of the `evicted` messages and of those that `previous` covers.

    `evicted` are in chronological order, but a request may be older than the messages of `previous`, because
    the latest request is never evicted. `visible` are identifiers that the rest of the prompt still shows;
    the recap does not repeat them. `handles` are those of the evicted descriptors, `later` the messages that
    follow the evicted ones in the prompt. The text takes at most `cap_tokens`, unless the cap is too small
    for the headings.
    """
    extraction = _Extraction(evicted, previous, cap_tokens, counter, later)
    turns = [message.turn for message in evicted]
    recap = Recap(
        first_turn=previous.first_turn if previous else min(turns, default=0),
        last_turn=max([*turns, previous.last_turn if previous else 0]),
        open_items=extraction.open_items(),
        decisions=extraction.decisions(),
        facts=extraction.commands(),
    )
    recap = extraction.with_statements(recap)
    recap = extraction.with_handles(recap, handles)
    return extraction.with_entities(recap, visible)


def complete(
    recap: Recap,
    evicted: Sequence[Message],
    *,
    counter: TokenCounter,
    cap_tokens: int,
    previous: Recap | None = None,
) -> Recap:
    """Add missing names and the handles of `previous` to a model's recap of `evicted`, within its cap.

    Names that do not fit are stored in the reserve. The model's text is not changed.
    """
    extraction = _Extraction(evicted, previous, cap_tokens, counter)
    return extraction.with_entities(extraction.with_handles(recap, ()), frozenset())


class _Extraction:
    """The parts of a recap of `cap_tokens`, from the contents of the evicted messages and of `previous`."""

    def __init__(
        self,
        evicted: Sequence[Message],
        previous: Recap | None,
        cap_tokens: int,
        counter: TokenCounter,
        later: Sequence[Message] = (),
    ) -> None:
        self._previous, self._cap, self._counter = previous, cap_tokens, counter
        self._end = evicted[-1].position + 1 if evicted else 0
        self._contents = contents = Contents()
        if previous:
            contents.fold(previous)
        for message in evicted[-_MOST_MESSAGES:]:
            contents.observe(message)
        contents.todo_list.observe_shown(later)
        contents.names.count()

    def decisions(self) -> tuple[Item, ...]:
        cap = int(self._cap * DECISION_SHARE)
        return self._newest(self._contents.newest_decisions(cap, self._counter), cap)

    def commands(self) -> tuple[Item, ...]:
        """Return the newest commands and other calls, and the newest lookups in the space that they leave."""
        room, least = self._cap * FACT_SHARE, min(_MIN_FACTS, self._cap * _MIN_FACTS_SHARE)
        items = list(self._current_commands())
        acts = self._newest([item for item in items if not is_lookup(item)], int(max(room, least)))
        left = int(room) - sum(self._counter.count(item.render()) + 1 for item in acts)
        lookups = self._newest(filter(is_lookup, items), left)
        return tuple(sorted([*acts, *lookups], key=lambda item: item.sources))

    def _current_commands(self) -> Iterator[Item]:
        """Yield the commands. One that failed long ago and was not run again is no longer open.

        A search that found nothing long ago is left out.
        """
        for item in self._contents.commands.items.values():
            if max(item.sources, default=0) >= self._end - _GIVEN_UP_AFTER:
                yield item
            elif not (is_failure(item) and is_inspection(item.text.strip("`"))):
                yield replace(item, status=None)

    def open_items(self) -> tuple[Item, ...]:
        """Return all requests, with the longest clipped so that all fit, and the steps of the to-do list.

        The steps take at most a third of the room. If even the beginnings of the requests do not fit, the
        oldest completed ones are dropped. The newest answer is included, because the next request may refer
        to it ("Yes, do that"), except in a conversation without tools, whose statements other sections list.
        """
        items = list(self._contents.open_items.items.values())
        cap, answer_cap = int(self._cap * REQUEST_SHARE), int(self._cap * ANSWER_SHARE)
        size = _request_size(items, cap * _CHARACTERS_PER_TOKEN)
        answers = (item for item in reversed(items) if item.notes and not self._contents.is_prose)
        answered = next(answers, None)
        answer_size = max(answer_cap * _CHARACTERS_PER_TOKEN, _MIN_REQUEST)
        clipped = [
            replace(
                item,
                text=_clipped(item.text, size),
                notes=tuple(_ends(note, answer_size) for note in item.notes) if item is answered else (),
            )
            for item in items
        ]
        room = cap * 3 // 2 + (answer_cap if answered else 0)
        todo_list = self._contents.todo_list
        steps = () if todo_list.is_abandoned(items) else self._first(todo_list.items(), cap // 2)
        used = sum(self._counter.count(item.render()) + 1 for item in steps)
        return (*self._newest(clipped, room - used), *steps)

    def _newest(self, items: Iterable[Item], room: int) -> tuple[Item, ...]:
        """Return as many of the newest items as fit, in chronological order. Open items have a bonus."""
        kept = self._first(sorted(items, key=_recency, reverse=True), room)
        return tuple(sorted(kept, key=lambda item: item.sources))

    def _first(self, items: Iterable[Item], room: int) -> list[Item]:
        """Return the first items, as many as fit."""
        kept = []
        for item in items:
            room -= self._counter.count(item.render()) + 1
            if room < 0:
                break
            kept.append(item)
        return kept

    def with_statements(self, recap: Recap) -> Recap:
        """Fill most of the cap with statements that the recap does not contain, if no tools were used."""
        if not self._contents.is_prose:
            return recap
        bare = replace(recap, facts=())
        room = int(self._cap * PROSE_SHARE) - self._counter.count(bare.render())
        items = self._contents.statements.values()
        return replace(bare, facts=choose(items, shown=bare.render(), cap_tokens=room, counter=self._counter))

    def with_handles(self, recap: Recap, handles: Sequence[Handled]) -> Recap:
        """Add the handles of evicted descriptors and of the previous recap, within their share of the cap."""
        first_path = self._contents.paths.first_path
        placed = [replace(handled, subject=first_path(handled.subject)) for handled in handles]
        return with_handles(
            replace(recap, handles_left_out=self._previous.handles_left_out if self._previous else 0),
            merged(handles_of(self._previous), placed),
            room=min(int(self._cap * HANDLE_SHARE), self._cap - recap.tokens(self._counter)),
            counter=self._counter,
            files=self._contents.files,
        )

    def with_entities(self, recap: Recap, visible: Collection[str]) -> Recap:
        """Add as many names to the recap as its cap allows."""
        counter, contents = self._counter, self._contents
        shown = references(recap.render()).union(visible)
        room = self._cap - recap.tokens(counter) - _TITLE_TOKENS
        sizes = name_sizes(counter)
        ranked = rank(contents, self._end, room=room, sizes=sizes)
        lines = {item.text for item in recap.entities}
        packing = Packing(contents, ranked, shown=shown, count=counter.count, sizes=sizes, lines=lines)
        while True:
            packing.fill(room)
            entities = packing.items()
            full = replace(recap, entities=_joined(recap.entities, entities))
            over = full.tokens(counter) - self._cap
            if over <= 0 or not entities:
                return replace(full, reserve=packing.reserve())
            room -= over  # the tokens of the parts do not add up exactly to those of the whole


def _joined(existing: Sequence[Item], packed: Sequence[Item]) -> tuple[Item, ...]:
    """Merge packed items into existing ones with the same text; append the others."""
    named = {item.text: item for item in packed}
    joined = (
        replace(item, mentions=item.mentions + named.pop(item.text).mentions) if item.text in named else item
        for item in existing
    )
    return (*joined, *named.values())


def _request_size(requests: Sequence[Item], room: int) -> int:
    """Return the length to which requests are clipped so that all fit, in characters as `room`."""
    size = max((len(item.text) for item in requests), default=0)
    while size > _MIN_REQUEST and sum(min(len(item.text), size) for item in requests) > room:
        size = size * 3 // 4
    return max(size, _MIN_REQUEST)


def _clipped(request: str, size: int) -> str:
    """Return the beginning of a request, or its ends if it contains pasted data, also in an earlier recap."""
    has_ends = len(request) > _PASTED or _GAP in request
    return _ends(request, size) if has_ends else shortened(request, size)


def _ends(text: str, size: int) -> str:
    """Return the text, or its beginning and end if it is longer than `size` characters."""
    if len(text) <= size:
        return text
    half = size // 2 - 2
    start, end = shortened(text, half).removesuffix("…"), text[-half:]
    space = end.find(" ", 0, half // 4)
    return f"{start}{_GAP}{end[space + 1 :]}"


def _recency(item: Item) -> int:
    return max(item.sources, default=0) + (_OPEN_BONUS if item.status is Status.OPEN else 0)
