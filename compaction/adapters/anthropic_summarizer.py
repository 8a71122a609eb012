"""Session summaries written by Claude."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from compaction.adapters.claude import Claude
from compaction.adapters.tiktoken_counter import TiktokenCounter
from compaction.errors import SummaryError
from compaction.messages import Message
from compaction.recap.extract import complete
from compaction.recap.model_input import split_by_tokens
from compaction.recap.prompt import summary_request
from compaction.recap.reply import Source, summary_read
from compaction.recap.summary import SummaryResult
from compaction.recap.values import Recap
from compaction.sizes.tokens import TokenCounter
from compaction.structured_output import Reply

#: Maximum estimated tokens of the session per request; longer input is summarized in pieces. This is far
#: below every model's window, because the default model charges five times as much for prompts over 100,000
#: tokens and counts up to 1.6 times as many tokens as the estimate.
MAX_INPUT_TOKENS = 60_000


class AnthropicSummarizer:
    """A `Summarizer` that calls Claude. Takes the options of `Claude`."""

    def __init__(
        self,
        api_key: str,
        *,
        max_input_tokens: int = MAX_INPUT_TOKENS,
        counter: TokenCounter | None = None,
        **options: Any,
    ) -> None:
        self._claude = Claude(api_key, **options)
        self._max_input_tokens = max_input_tokens
        self._counter = counter or TiktokenCounter()

    @property
    def model(self) -> str:
        return self._claude.model

    def summarize(
        self,
        evicted: Sequence[Message],
        *,
        previous: Recap | None = None,
        cap_tokens: int,
        instructions: str = "",
        requests: Sequence[Message] = (),
    ) -> SummaryResult:
        """See `Summarizer.summarize`. A long input is summarized in pieces, each extending the last recap."""
        if not evicted:
            raise ValueError("nothing to summarize")
        exchange = self._claude.begin()
        recap, dropped = previous, dict[str, None]()
        try:
            for piece in split_by_tokens(evicted, self._max_input_tokens, self._counter):
                request = summary_request(
                    piece,
                    previous=recap,
                    cap_tokens=cap_tokens,
                    instructions=instructions,
                    requests=requests,
                )
                source = Source.of(piece, recap, instructions, *(message.text for message in requests))
                recap, invented = exchange.answer(
                    request,
                    partial(self._read, source=source, cap_tokens=cap_tokens),
                    length_hint=f"Write at most {cap_tokens // 2} tokens.",
                )
                dropped |= dict.fromkeys(invented)
        except SummaryError as error:
            error.calls, error.requests = exchange.calls, exchange.requests
            raise
        assert recap is not None
        return SummaryResult(
            recap=complete(recap, evicted, previous=previous, counter=self._counter, cap_tokens=cap_tokens),
            calls=tuple(exchange.calls),
            model=self.model,
            requests=exchange.requests,
            dropped_identifiers=tuple(dropped),
        )

    def _read(self, reply: Reply, *, source: Source, cap_tokens: int) -> tuple[Recap, tuple[str, ...]]:
        return summary_read(reply, source=source, cap_tokens=cap_tokens, counter=self._counter)
