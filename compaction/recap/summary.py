"""Summaries by a model: what one that makes them offers, and what it hands back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from compaction.messages import Message, Usage
from compaction.recap.values import Recap


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryResult:
    """A model's recap and what it took. `calls` is the usage of each request that the provider answered,
    repeated ones included; `requests` counts every one that was sent. `dropped_identifiers` are those
    that the model wrote and that occur nowhere in what it was given: they are not in `recap`."""

    recap: Recap
    calls: Sequence[Usage]
    model: str
    requests: int
    dropped_identifiers: tuple[str, ...] = ()


class Summarizer(Protocol):
    """Writes the recap of evicted messages with a model. Blocks for as long as the model takes."""

    def summarize(
        self,
        evicted: Sequence[Message],
        *,
        previous: Recap | None = None,
        cap_tokens: int,
        instructions: str = "",
    ) -> SummaryResult:
        """The recap of `evicted`, messages in order of time that follow those of `previous`.

        Its text takes at most `cap_tokens`, by the summariser's own counter. `instructions` are those of
        the person who asked for the compaction. Raises SummaryError (see `compaction.errors`): the
        deterministic recap stands in then.
        """
        ...
