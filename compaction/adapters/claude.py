"""Asking Claude for JSON of a schema: the one file that speaks to Anthropic's API.

The SDK's own retries are off: this is the one place that decides what is worth another try. Structured
outputs and not a forced tool call give the answer its form: current models refuse the latter.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

import anthropic
from anthropic.types import Message as ApiMessage
from anthropic.types import OutputConfigParam
from anthropic.types import Usage as ApiUsage

from compaction.asking import Reply, Request
from compaction.capabilities import capabilities_of
from compaction.errors import (
    SummaryError,
    SummaryMalformed,
    SummaryRejected,
    SummaryTooLong,
    SummaryUnavailable,
)
from compaction.messages import Usage

#: The cheapest Claude by the price table of November 2026: $0.10 and $0.50 a million tokens.
DEFAULT_MODEL = "claude-haiku-5-5"

#: Tries of one request, the first one included.
MAX_TRIES = 3

_TRANSIENT = frozenset({408, 409, 429})
_BACKOFF_GROWTH = 3.0

T = TypeVar("T")


class Claude:
    """A model of Anthropic's. Usable from several threads; make it after a fork, not before.

    `timeout` are the seconds that one try may wait for the answer, `total_timeout` those of all that is
    asked in one go. `backoff` is the first pause between two tries in seconds, the next one is three times
    as long; each is shortened at random by up to a half. A longer Retry-After is obeyed, unless it does not
    fit into `total_timeout`.
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
    ) -> None:
        self.model = model
        self.timeout = timeout
        self.total_timeout = total_timeout
        self.backoff = backoff
        self.client = anthropic.Anthropic(api_key=api_key, base_url=base_url, max_retries=0)

    def asking(self) -> Asking:
        """Begins to ask: from now on `total_timeout` counts."""
        return Asking(self)


class Asking:
    """Questions to a model that belong together. `calls` is the usage of each request that the provider
    answered, repeated ones included; `requests` counts every one that was sent."""

    def __init__(self, claude: Claude) -> None:
        self.calls: list[Usage] = []
        self.requests = 0
        self._claude = claude
        self._deadline = time.monotonic() + claude.total_timeout

    def answer(self, request: Request, read: Callable[[Reply], T], *, shorter: str) -> T:
        """What `read` makes of the model's answer; asked once more where its form or length is wrong, then
        with the wish `shorter` where it was too long. Raises SummaryError."""
        try:
            return read(self._reply(request))
        except (SummaryMalformed, SummaryTooLong) as error:
            again = request.again(_complaint(error, shorter))
        return read(self._reply(again))

    def _reply(self, request: Request) -> Reply:
        """The model's answer. Raises SummaryRejected, or SummaryUnavailable after the last try."""
        pause = self._claude.backoff
        for tried in range(1, MAX_TRIES + 1):
            try:
                return self._read(self._send(request))
            except SummaryUnavailable as error:
                wait = max(pause * random.uniform(0.5, 1.0), error.retry_after or 0.0)  # noqa: S311
                if tried == MAX_TRIES or wait >= self._seconds_left:
                    raise
            time.sleep(wait)
            pause *= _BACKOFF_GROWTH
        raise AssertionError("the last try returns or raises")

    @property
    def _seconds_left(self) -> float:
        return self._deadline - time.monotonic()

    def _send(self, request: Request) -> ApiMessage:
        output: OutputConfigParam = {"format": {"type": "json_schema", "schema": dict(request.schema)}}
        if not capabilities_of(self._claude.model).prefill:
            output["effort"] = "low"  # the models without prefill are those that think by themselves
        if self._seconds_left <= 0:
            raise SummaryUnavailable(f"no answer within {self._claude.total_timeout:g} seconds")
        self.requests += 1
        try:
            return self._claude.client.messages.create(
                model=self._claude.model,
                max_tokens=request.max_tokens,
                system=request.system,
                messages=[{"role": "user", "content": request.content}],
                output_config=output,
                timeout=min(self._claude.timeout, self._seconds_left),
            )
        except anthropic.APIConnectionError as error:
            raise SummaryUnavailable(_told(error)) from error
        except anthropic.APIStatusError as error:
            raise _status_error(error) from error
        except ValueError as error:  # what the SDK lets through where the body is not JSON
            raise SummaryUnavailable("the answer is not JSON") from error

    def _read(self, message: ApiMessage) -> Reply:
        """Adds a message's usage; its text. Raises SummaryMalformed for what is no message."""
        try:
            self.calls.append(_usage(message.usage))
            text = "".join(block.text for block in message.content if block.type == "text")
        except (AttributeError, TypeError, ValueError) as error:  # the SDK does not check what it is sent
            raise SummaryMalformed("the answer is not a message") from error
        return Reply(text=text, stop_reason=message.stop_reason)


def _usage(told: ApiUsage) -> Usage:
    return Usage(
        uncached_tokens=int(told.input_tokens),
        cache_read_tokens=int(told.cache_read_input_tokens or 0),
        cache_write_tokens=int(told.cache_creation_input_tokens or 0),
        output_tokens=int(told.output_tokens),
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


def _complaint(error: SummaryError, shorter: str) -> str:
    if isinstance(error, SummaryTooLong):
        return f"Your last answer was too long: {error}. {shorter}"
    return f"Your last answer could not be read: {error}. Answer with JSON of the schema only."
