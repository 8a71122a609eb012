"""Summaries by Claude."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from compaction.adapters.claude import Claude
from compaction.adapters.tiktoken_counter import TiktokenCounter
from compaction.asking import Reply
from compaction.errors import SummaryError
from compaction.messages import Message
from compaction.recap.extract import complete
from compaction.recap.prompt import summary_request
from compaction.recap.reply import Source, summary_read
from compaction.recap.summary import SummaryResult
from compaction.recap.transcript import pieces
from compaction.recap.values import Recap
from compaction.tokens import TokenCounter

#: Estimated tokens of the session in one request; more is summarised piece by piece. Well below every
#: model's window: the default model bills prompts over 100,000 tokens five times as high, and its
#: vocabulary makes up to 1.6 times as many tokens of a text as the one that we count with.
MAX_INPUT_TOKENS = 60_000


class AnthropicSummarizer:
    """A `Summarizer` that asks Claude, with the options of `Claude`."""

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
    ) -> SummaryResult:
        """See `Summarizer.summarize`. Each piece of a long input is summarised over the recap before it."""
        if not evicted:
            raise ValueError("nothing to summarise")
        asking = self._claude.asking()
        recap, dropped = previous, dict[str, None]()
        try:
            for piece in pieces(evicted, self._max_input_tokens, self._counter):
                request = summary_request(
                    piece, previous=recap, cap_tokens=cap_tokens, instructions=instructions
                )
                source = Source.of(piece, recap, instructions)
                recap, made_up = asking.answer(
                    request,
                    partial(self._read, source=source, cap_tokens=cap_tokens),
                    shorter=f"Write at most {cap_tokens // 2} tokens.",
                )
                dropped |= dict.fromkeys(made_up)
        except SummaryError as error:
            error.calls, error.requests = asking.calls, asking.requests
            raise
        assert recap is not None
        return SummaryResult(
            recap=complete(recap, evicted, previous=previous, counter=self._counter, cap_tokens=cap_tokens),
            calls=tuple(asking.calls),
            model=self.model,
            requests=asking.requests,
            dropped_identifiers=tuple(dropped),
        )

    def _read(self, reply: Reply, *, source: Source, cap_tokens: int) -> tuple[Recap, tuple[str, ...]]:
        return summary_read(reply, source=source, cap_tokens=cap_tokens, counter=self._counter)
