"""What a call does, step by step, whether the client is synchronous or asynchronous.

A call is a generator. It yields the steps that wait or take long, receives their results, and returns the
result of the call. `transport.py` has the two loops that carry out the steps: one blocks, one awaits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from contextapp_client.errors import UnexpectedResponse

T = TypeVar("T")

#: Bytes from which the asynchronous client sends a request in parts, and parses a response in a thread.
LARGE = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One attempt of a request. Its result is a `Response`, or an exception of `httpx2`."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)  # contains the API key
    data: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Pause:
    """A number of seconds. With 0, other tasks of an event loop get their turn."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Work:
    """A function that takes long. It must not use the transport."""

    function: Callable[[], Any]


Step = Request | Pause | Work
Steps = Generator[Step, Any, T]


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A response with any status. `headers` ignores case."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    def parsed(self) -> Steps[Any]:
        """Parse the body as JSON. Raises `UnexpectedResponse`."""
        return parse(self._load, self.data)

    def _load(self, data: bytes) -> Any:
        try:
            return load_json(data)
        except ValueError:
            raise UnexpectedResponse(f"the response with status {self.status} is not JSON") from None


def parse(function: Callable[[bytes], T], data: bytes) -> Steps[T]:
    """Return `function(data)`, calculated in a thread if `data` is large."""
    result: T = (yield Work(lambda: function(data))) if len(data) > LARGE else function(data)
    return result


def load_json(data: bytes) -> Any:
    """Parse JSON. While large data is parsed, other threads get their turn after each object."""
    return json.loads(data, object_hook=_unchanged if len(data) > LARGE else None)


def _unchanged(value: dict[str, Any]) -> dict[str, Any]:
    # The parser is C code that keeps Python's lock. It can only be released in a Python function.
    return value
