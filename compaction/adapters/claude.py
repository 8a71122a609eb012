"""Request JSON from Claude. This is the only module that calls Anthropic's API.

The SDK's retries are disabled, so that only this module decides what to retry. The schema is enforced with
structured outputs: current models reject a forced tool call.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeVar

import anthropic
import httpx2
from anthropic.types import Message as ApiMessage
from anthropic.types import OutputConfigParam
from anthropic.types import Usage as ApiUsage

from compaction.capabilities import capabilities_of
from compaction.errors import (
    SummaryError,
    SummaryMalformed,
    SummaryRejected,
    SummaryTooLong,
    SummaryUnavailable,
)
from compaction.messages import Usage
from compaction.structured_output import Reply, Request

#: The cheapest Claude model in November 2026: $0.10 input and $0.50 output per million tokens.
DEFAULT_MODEL = "claude-haiku-5-5"

#: Attempts per request, including the first.
MAX_TRIES = 3

#: No model reads or writes more tokens in one call. A sum of several calls still fits into a database column.
_MAX_TOKENS = 100_000_000

#: The output limit up to which `timeout` applies; requests with a higher one may take longer in proportion.
#: Claude models write 60 to 150 tokens per second, so 60 seconds are too short for a recap of 8,000 tokens.
TIMED_TOKENS = 9_000

_TRANSIENT = frozenset({408, 409, 429})

#: What the status of an error means for the user, who may be able to fix it.
_MEANINGS = {
    400: "the provider rejected the request; the worker's log contains its message",
    401: "the provider rejected the API key",
    402: "the provider's account has no credit",
    403: "the API key has no access to the model {model}",
    404: "the provider at this URL has no model {model}",
    408: "the provider did not respond in time",
    413: "the request is too large for the model {model}",
    429: "the provider's rate limit was reached",
    529: "the provider is overloaded",
}
_BACKOFF_GROWTH = 3.0

T = TypeVar("T")


class Claude:
    """A Claude model. Can be used from several threads, but must not be created before a fork.

    `timeout` (see `TIMED_TOKENS`) is the limit for one attempt and `total_timeout` that for one exchange, in
    seconds. `backoff` is the first pause between attempts in seconds; each further pause is three times as
    long, and every pause is shortened at random by up to half. A longer Retry-After is respected if it fits
    into `total_timeout`.
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
        self.client = anthropic.Anthropic(
            api_key=api_key, base_url=base_url, max_retries=0, http_client=_connections()
        )

    def begin(self) -> Exchange:
        """Begin an exchange; its `total_timeout` starts now."""
        return Exchange(self)


@cache
def _connections() -> anthropic.DefaultHttpxClient:
    """Return this process's shared connections. Loading the certificates takes 40 ms."""
    return anthropic.DefaultHttpxClient(event_hooks={"request": [_set_deadline], "response": [_limit_body]})


def _set_deadline(request: httpx2.Request) -> None:
    request.extensions["deadline"] = time.monotonic() + request.extensions["timeout"]["read"]


def _limit_body(response: httpx2.Response) -> None:
    assert isinstance(response.stream, httpx2.SyncByteStream)
    response.stream = _LimitedBody(response.stream, deadline=response.request.extensions["deadline"])


class _LimitedBody(httpx2.SyncByteStream):
    """A body that must be complete by the deadline.

    The timeouts of the client limit only the time without new bytes, and some proxies send spaces while they
    wait for the model.
    """

    def __init__(self, body: httpx2.SyncByteStream, *, deadline: float) -> None:
        self._body, self._deadline = body, deadline

    def __iter__(self) -> Iterator[bytes]:
        for part in self._body:
            if time.monotonic() > self._deadline:
                raise httpx2.ReadTimeout("the answer is not complete")
            yield part

    def close(self) -> None:
        self._body.close()


class Exchange:
    """A series of requests for one purpose, with a shared deadline.

    `calls` is the usage of each answered request, including repeated ones; `requests` is the number of all
    requests sent.
    """

    def __init__(self, claude: Claude) -> None:
        self.calls: list[Usage] = []
        self.requests = 0
        self._claude = claude
        self._deadline = time.monotonic() + claude.total_timeout

    def answer(self, request: Request, read: Callable[[Reply], T], *, length_hint: str) -> T:
        """Send a request and return the reply parsed by `read`. Raises `SummaryError`.

        If the reply is malformed or too long, the request is repeated once with an error message;
        `length_hint` is added if it was too long.
        """
        try:
            return read(self._reply(request))
        except (SummaryMalformed, SummaryTooLong) as error:
            again = request.again(_complaint(error, length_hint))
        return read(self._reply(again))

    def _reply(self, request: Request) -> Reply:
        """Return the reply. Raises `SummaryRejected`, or `SummaryUnavailable` after the last attempt."""
        pause = self._claude.backoff
        for attempt in range(1, MAX_TRIES + 1):
            try:
                return self._read(self._send(request))
            except SummaryUnavailable as error:
                wait = max(pause * random.uniform(0.5, 1.0), error.retry_after or 0.0)  # noqa: S311
                if attempt == MAX_TRIES or wait >= self._seconds_left:
                    raise
            time.sleep(wait)
            pause *= _BACKOFF_GROWTH
        raise AssertionError("the last attempt returns or raises")

    @property
    def _seconds_left(self) -> float:
        return self._deadline - time.monotonic()

    def _send(self, request: Request) -> ApiMessage:
        output: OutputConfigParam = {"format": {"type": "json_schema", "schema": dict(request.schema)}}
        if not capabilities_of(self._claude.model).prefill:
            output["effort"] = "low"  # models without prefill think by default
        if self._seconds_left <= 0:
            raise SummaryUnavailable(f"no answer within {self._claude.total_timeout:g} seconds")
        timeout = self._claude.timeout * max(1.0, request.max_tokens / TIMED_TOKENS)
        self.requests += 1
        try:
            return self._claude.client.messages.create(
                model=self._claude.model,
                max_tokens=request.max_tokens,
                system=request.system,
                messages=[{"role": "user", "content": request.content}],
                output_config=output,
                timeout=min(timeout, self._seconds_left),
            )
        except anthropic.APIConnectionError as error:
            raise SummaryUnavailable(_connection_error_text(error)) from error
        except anthropic.APIStatusError as error:
            raise _status_error(error, self._claude.model) from error
        except ValueError as error:  # the SDK raises this if the body is not JSON
            raise SummaryUnavailable("the answer is not JSON") from error

    def _read(self, message: ApiMessage) -> Reply:
        """Record the usage of a response and return its text. Raises `SummaryMalformed`."""
        try:
            self.calls.append(_usage(message.usage))
            text = "".join(block.text for block in message.content if block.type == "text")
        except (AttributeError, TypeError, ValueError) as error:  # the SDK does not validate responses
            raise SummaryMalformed("the answer is not a message") from error
        return Reply(text=text, stop_reason=message.stop_reason)


def _usage(usage: ApiUsage) -> Usage:
    return Usage(
        uncached_tokens=_tokens(usage.input_tokens),
        cache_read_tokens=_tokens(usage.cache_read_input_tokens or 0),
        cache_write_tokens=_tokens(usage.cache_creation_input_tokens or 0),
        output_tokens=_tokens(usage.output_tokens),
    )


def _tokens(value: int) -> int:
    """Return a number of tokens. Raises ValueError if no answer can have that many."""
    tokens = int(value)
    if not 0 <= tokens <= _MAX_TOKENS:
        raise ValueError(f"{tokens} tokens")
    return tokens


def _status_error(error: anthropic.APIStatusError, model: str) -> SummaryError:
    text = _status_text(error.status_code, model)
    if error.status_code in _TRANSIENT or error.status_code >= 500:
        unavailable = SummaryUnavailable(text)
        unavailable.retry_after = _seconds(error.response.headers.get("retry-after"))
        return unavailable
    rejected = SummaryRejected(text)
    rejected.status = error.status_code
    return rejected


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header or ""))
    except ValueError:
        return None  # the header is a date; the API sends seconds


def _status_text(status: int, model: str) -> str:
    """Return a description of the error for the record, without the provider's message or host."""
    default = "the provider failed" if status >= 500 else "the provider rejected the request"
    return f"{_MEANINGS.get(status, default).format(model=model)} (status {status})"


def _connection_error_text(error: anthropic.APIConnectionError) -> str:
    """Return a description of the error for the record, without the host."""
    if isinstance(error, anthropic.APITimeoutError):
        return "the provider did not respond in time"
    return "the connection to the provider failed"


def _complaint(error: SummaryError, length_hint: str) -> str:
    if isinstance(error, SummaryTooLong):
        return f"Your last answer was too long: {error}. {length_hint}"
    return f"Your last answer could not be read: {error}. Answer with JSON of the schema only."
