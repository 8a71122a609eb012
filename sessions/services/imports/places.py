"""Where imported turns go in their session, and the context window that a log suggests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pricing
from importers.base import ImportedTurn
from sessions.models import AgentSession
from sessions.selectors.token_budgets import limit_of
from sessions.services.imports.prepare import PreparedTurn
from sessions.services.imports.rows import PlacedTurn
from sessions.services.imports.tally import Tally

#: Context windows that models are commonly offered with, in tokens.
_STANDARD_WINDOWS = (128_000, 200_000, 400_000, 1_000_000)


def turns_place(
    session: AgentSession, turns: Sequence[PreparedTurn], tally: Tally, elsewhere: set[str]
) -> tuple[list[PlacedTurn], Tally]:
    """Return the turns with their places, starting at `tally`, and the counters after them."""
    placed, limit = [], limit_of(session)
    for turn in turns:
        billed = turn.billed and turn.response_id not in elsewhere
        placed.append(
            PlacedTurn(
                turn=turn,
                index=tally.turns,
                first_position=tally.messages,
                prompt=tally.prompt(turn),
                billed=billed,
                output_spike=tally.output_spike(turn, limit.tokens) if limit else None,
            )
        )
        tally = tally.after(turn, format=session.format, billed=billed)
    return placed, tally


def context_window_of(model: str, turns: Iterable[PreparedTurn | ImportedTurn]) -> int | None:
    """Return the model's window, or the standard window at which the client compacted if that is smaller.

    Some models have a longer window only on request, and clients compact shortly before theirs is full.
    """
    turns, window = list(turns), pricing.context_window(model)
    marks = (turn.client_compaction for turn in turns)
    full = [mark.tokens_before or 0 for mark in marks if mark and mark.trigger == "auto"]
    if window is None or not any(full):
        return window
    largest = max(*full, *(turn.usage.prompt_tokens for turn in turns if turn.usage), 0)
    return min([window, *(size for size in _STANDARD_WINDOWS if size >= largest)])
