"""What a model's summaries would cost in a replay, before anybody pays for them."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.errors import SummaryUnavailable
from compaction.messages import Message, Usage
from compaction.recap import Recap, SummaryResult
from compaction.recap.model_input import split_by_tokens
from compaction.recap.prompt import summary_request
from compaction.tokens import TokenCounter


class EstimatingSummarizer:
    """Asks nobody: counts what would be asked, and says that nobody answered.

    So the replay goes on with the deterministic recap, and its result's `summaries` are the usage that a
    model's would have had: the requests as they would be sent, the answers at their cap.
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
    ) -> SummaryResult:
        """Never answers: raises SummaryUnavailable with the estimated usage."""
        calls = []
        for piece in split_by_tokens(evicted, self._max_input_tokens, self._counter):
            request = summary_request(
                piece, previous=previous, cap_tokens=cap_tokens, instructions=instructions
            )
            asked = self._counter.count(request.system) + self._counter.count(request.content)
            calls.append(Usage(uncached_tokens=asked, output_tokens=cap_tokens))
        error = SummaryUnavailable("an estimate asks nobody")
        error.calls, error.requests = calls, len(calls)
        raise error
