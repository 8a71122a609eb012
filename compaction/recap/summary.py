"""The protocol of a summarizer, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from compaction.messages import Message, Usage
from compaction.recap.values import Recap


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryResult:
    """A model's recap and its usage.

    `calls` is the usage of each answered request, including retries; `requests` is the number of all
    requests. `dropped_identifiers` are identifiers that the model invented; they were removed from `recap`.
    """

    recap: Recap
    calls: Sequence[Usage]
    model: str
    requests: int
    dropped_identifiers: tuple[str, ...] = ()


class Summarizer(Protocol):
    """Writes the recap of evicted messages with a model. Blocks until the model has answered."""

    def summarize(
        self,
        evicted: Sequence[Message],
        *,
        previous: Recap | None = None,
        cap_tokens: int,
        instructions: str = "",
        requests: Sequence[Message] = (),
    ) -> SummaryResult:
        """Return the recap of `evicted`, which are in chronological order and follow those of `previous`.

        Its text takes at most `cap_tokens`, by the summarizer's own counter. `instructions` are those of the
        policy and of the user who requested the compaction; `requests` are the user's first and latest
        request, if the prompt still contains them. Raises SummaryError (see `compaction.errors`); the caller
        then uses the deterministic recap.
        """
        ...
