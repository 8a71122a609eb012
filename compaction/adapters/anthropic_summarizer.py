"""Summaries by Claude: the one file that speaks to Anthropic's API.

The SDK's own retries are off: this is the one place that decides what is worth another try. Structured
outputs and not a forced tool call give the answer its form: current models refuse the latter.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import anthropic
from anthropic.types import Message as ApiMessage
from anthropic.types import OutputConfigParam
from anthropic.types import Usage as ApiUsage

from compaction.adapters.tiktoken_counter import TiktokenCounter
from compaction.capabilities import capabilities_of
from compaction.errors import (
    SummaryError,
    SummaryMalformed,
    SummaryRejected,
    SummaryTooLong,
    SummaryUnavailable,
)
from compaction.messages import Message, Usage
from compaction.recap.extract import complete
from compaction.recap.prompt import Request, summary_request
from compaction.recap.reply import Reply, Source, summary_read
from compaction.recap.summary import SummaryResult
from compaction.recap.transcript import pieces
from compaction.recap.values import Recap
from compaction.tokens import TokenCounter

#: The cheapest Claude by the price table of November 2026: $0.10 and $0.50 a million tokens.
DEFAULT_MODEL = "claude-haiku-5-5"

#: Estimated tokens of the session in one request; more is summarised piece by piece. Well below every
#: model's window: the default model bills prompts over 100,000 tokens five times as high, and its
#: vocabulary makes up to 1.6 times as many tokens of a text as the one that we count with.
MAX_INPUT_TOKENS = 60_000

#: Tries of one request, the first one included.
MAX_TRIES = 3

_TRANSIENT = frozenset({408, 409, 429})
_BACKOFF_GROWTH = 3.0


class AnthropicSummarizer:
    """A `Summarizer` that asks Claude. Usable from several threads; make it after a fork, not before.

    `timeout` are the seconds that one try may wait for the answer, `total_timeout` those of the whole
    summary. `backoff` is the first pause between two tries in seconds, the next one is
    three times as long; each is shortened at random by up to a half. A longer Retry-After is obeyed,
    unless it does not fit into `total_timeout`.
    """

    def __init__(
        self,
        api_key: str,
        *,
        base_url: str | None = None,
        model: str = DEFAULT_MODEL,
        timeout: float = 60.0,
        total_timeout: float = 180.0,
        backoff: float = 1.0,
        max_input_tokens: int = MAX_INPUT_TOKENS,
        counter: TokenCounter | None = None,
    ) -> None:
        self.model = model
        self._client = anthropic.Anthropic(api_key=api_key, base_url=base_url, max_retries=0)
        self._timeout = timeout
        self._total_timeout = total_timeout
        self._backoff = backoff
        self._max_input_tokens = max_input_tokens
        self._counter = counter or TiktokenCounter()

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
        spent = _Spent(deadline=time.monotonic() + self._total_timeout)
        recap, dropped = previous, dict[str, None]()
        try:
            for piece in pieces(evicted, self._max_input_tokens, self._counter):
                request = summary_request(
                    piece, previous=recap, cap_tokens=cap_tokens, instructions=instructions
                )
                source = Source.of(piece, recap, instructions)
                recap, made_up = self._recap(request, source, cap_tokens, spent)
                dropped |= dict.fromkeys(made_up)
        except SummaryError as error:
            error.usage, error.requests = spent.usage, spent.requests
            raise
        assert recap is not None
        return SummaryResult(
            recap=complete(recap, evicted, previous=previous, counter=self._counter, cap_tokens=cap_tokens),
            usage=spent.usage,
            model=self.model,
            requests=spent.requests,
            dropped_identifiers=tuple(dropped),
        )

    def _recap(
        self, request: Request, source: Source, cap_tokens: int, spent: _Spent
    ) -> tuple[Recap, tuple[str, ...]]:
        """The recap that the model writes; asked once more where its form or length is wrong."""

        def attempt(asked: Request) -> tuple[Recap, tuple[str, ...]]:
            reply = self._ask(asked, spent)
            return summary_read(reply, source=source, cap_tokens=cap_tokens, counter=self._counter)

        try:
            return attempt(request)
        except (SummaryMalformed, SummaryTooLong) as error:
            again = request.again(_complaint(error, cap_tokens))
        return attempt(again)

    def _ask(self, request: Request, spent: _Spent) -> Reply:
        """The model's answer. Raises SummaryRejected, or SummaryUnavailable after the last try."""
        pause = self._backoff
        for tried in range(1, MAX_TRIES + 1):
            try:
                return spent.reply(self._send(request, spent))
            except SummaryUnavailable as error:
                wait = max(pause * random.uniform(0.5, 1.0), error.retry_after or 0.0)  # noqa: S311
                if tried == MAX_TRIES or wait >= spent.seconds_left:
                    raise
            time.sleep(wait)
            pause *= _BACKOFF_GROWTH
        raise AssertionError("the last try returns or raises")

    def _send(self, request: Request, spent: _Spent) -> ApiMessage:
        output: OutputConfigParam = {"format": {"type": "json_schema", "schema": dict(request.schema)}}
        if not capabilities_of(self.model).prefill:
            output["effort"] = "low"  # the models without prefill are those that think by themselves
        if spent.seconds_left <= 0:
            raise SummaryUnavailable(f"no summary within {self._total_timeout:g} seconds")
        spent.requests += 1
        try:
            return self._client.messages.create(
                model=self.model,
                max_tokens=request.max_tokens,
                system=request.system,
                messages=[{"role": "user", "content": request.content}],
                output_config=output,
                timeout=min(self._timeout, spent.seconds_left),
            )
        except anthropic.APIConnectionError as error:
            raise SummaryUnavailable(_told(error)) from error
        except anthropic.APIStatusError as error:
            raise _status_error(error) from error
        except ValueError as error:  # what the SDK lets through where the body is not JSON
            raise SummaryUnavailable("the answer is not JSON") from error


@dataclass(slots=True)
class _Spent:
    """What one summary has taken so far."""

    deadline: float
    usage: Usage = field(default_factory=Usage)
    requests: int = 0

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    def reply(self, message: ApiMessage) -> Reply:
        """Adds a message's usage; its text. Raises SummaryMalformed for what is no message."""
        try:
            self.usage = _sum(self.usage, message.usage)
            text = "".join(block.text for block in message.content if block.type == "text")
        except (AttributeError, TypeError) as error:  # the SDK does not check what it is sent
            raise SummaryMalformed("the answer is not a message") from error
        return Reply(text=text, stop_reason=message.stop_reason)


def _sum(usage: Usage, told: ApiUsage) -> Usage:
    return Usage(
        uncached_tokens=usage.uncached_tokens + told.input_tokens,
        cache_read_tokens=usage.cache_read_tokens + (told.cache_read_input_tokens or 0),
        cache_write_tokens=usage.cache_write_tokens + (told.cache_creation_input_tokens or 0),
        output_tokens=usage.output_tokens + told.output_tokens,
    )


def _status_error(error: anthropic.APIStatusError) -> SummaryError:
    if error.status_code in _TRANSIENT or error.status_code >= 500:
        unavailable = SummaryUnavailable(_told(error))
        unavailable.retry_after = _seconds(error.response.headers.get("retry-after"))
        return unavailable
    rejected = SummaryRejected(_told(error))
    rejected.status = error.status_code
    return rejected


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header or ""))
    except ValueError:
        return None  # a date: the API sends seconds


def _told(error: anthropic.APIError) -> str:
    """What went wrong, for a record. What else the provider says, or which host was asked, is the cause's."""
    status = f" (status {error.status_code})" if isinstance(error, anthropic.APIStatusError) else ""
    return f"the provider's client raised {type(error).__name__}{status}"


def _complaint(error: SummaryError, cap_tokens: int) -> str:
    if isinstance(error, SummaryTooLong):
        return f"Your last answer was too long: {error}. Write at most {cap_tokens // 2} tokens."
    return f"Your last answer could not be read: {error}. Answer with JSON of the schema only."
