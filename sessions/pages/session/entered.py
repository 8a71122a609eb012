"""What entered the context with a turn: the messages that the call before had not read, largest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sessions.models import AgentSession
from sessions.pages.session.seen_rows import SeenRow, seen_rows
from sessions.selectors.past_prompts import Outline

#: Messages that the page names; what one push may bring has no end.
SHOWN = 40

_NAMES = {"tool": "tool outputs", "assistant": "assistant", "user": "user", "system": "system"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """`rows` are the largest messages; `count` and `tokens` sum up all, `by_voice` those of `rows`."""

    rows: Sequence[SeenRow]
    count: int
    tokens: int
    by_voice: Sequence[tuple[str, int]]


def entered_of(session: AgentSession, outline: Outline, new_from: int) -> Entered:
    new = [entry for entry in outline.entries if entry.first >= new_from and not entry.is_generated]
    largest = sorted(new, key=lambda entry: -entry.message.tokens)[:SHOWN]
    known = [entry for entry in outline.entries if new_from - 2 <= entry.first < new_from]
    rows = [row for row in seen_rows(session, outline, [*known, *largest], new_from=new_from) if row.is_new]
    sums: dict[str, int] = {}
    for row in rows:
        name = _NAMES.get(row.voice, row.voice)
        sums[name] = sums.get(name, 0) + row.tokens
    return Entered(
        rows=rows,
        count=len(new),
        tokens=sum(entry.message.tokens for entry in new),
        by_voice=sorted(sums.items(), key=lambda pair: -pair[1]),
    )
