"""Estimate the cost of a model's summaries in a replay."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.errors import SummaryUnavailable
from compaction.messages import Message, Usage
from compaction.recap import Recap, SummaryResult
from compaction.recap.model_input import split_by_tokens
from compaction.recap.prompt import summary_request
from compaction.sizes.tokens import TokenCounter


class EstimatingSummarizer:
    """Counts the tokens of summary requests without sending them.

    Every call fails, so the replay continues with the deterministic recap. The `summaries` of its result are
    the estimated usage: the requests that would be sent, and answers of the maximum length.
    """

    def __init__(self, counter: TokenCounter, *, max_input_tokens: int) -> None:
        self._counter = counter
        self._max_input_tokens = max_input_tokens

    def summarize(
        self,
        evicted: Sequence[Message],
        *,
        previous: Recap | None = None,
        cap_tokens: int,
        instructions: str = "",
        requests: Sequence[Message] = (),
    ) -> SummaryResult:
        """Raise SummaryUnavailable with the estimated usage."""
        calls = []
        for piece in split_by_tokens(evicted, self._max_input_tokens, self._counter):
            request = summary_request(
                piece,
                previous=previous,
                cap_tokens=cap_tokens,
                instructions=instructions,
                requests=requests,
            )
            tokens = self._counter.count(request.system) + self._counter.count(request.content)
            calls.append(Usage(uncached_tokens=tokens, output_tokens=cap_tokens))
        error = SummaryUnavailable("no request was sent: this is an estimate")
        error.calls, error.requests = calls, len(calls)
        raise error
