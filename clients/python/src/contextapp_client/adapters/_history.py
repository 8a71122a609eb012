"""Store a framework's history, and return the messages that its model should see."""

from __future__ import annotations

import asyncio
import json
import logging
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from contextapp_client.errors import (
    ConnectionFailed,
    ContextAppError,
    InvalidRequest,
    NotFound,
    RateLimited,
    ServerError,
    Unavailable,
    UnexpectedResponse,
)
from contextapp_client.prompt import Prompt
from contextapp_client.session import AnySession, SessionCalls
from contextapp_client.steps import Steps, Work
from contextapp_client.transport import AsyncTransport, BaseTransport, SyncTransport
from contextapp_client.types import Format

_logger = logging.getLogger("contextapp_client")

T = TypeVar("T")
Message = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec(Generic[T]):
    """Translates between a framework's items and messages in a provider's format.

    `encode` returns the messages of an item, or none if it is not part of the conversation. `decode` returns
    items for messages that contextapp wrote or shortened.
    """

    format: Format
    encode: Callable[[T], Sequence[Message]]
    decode: Callable[[Sequence[Message]], Sequence[T]]


#: A session, or the steps that create it.
Opened = AnySession | Callable[[], Steps[AnySession]]


def compact(
    session: Opened,
    items: Sequence[T],
    codec: Codec[T],
    *,
    reconciled: Callable[[str], Steps[None] | None] | None = None,
    **fields: Any,
) -> Steps[list[T]]:
    """Store the whole history `items`, and return the items that the model should see.

    `reconciled` receives the id of the session that contains the history, which may be a fork, and may return
    more steps. `fields` are passed to `Session.sync`. Items that contextapp
    left unchanged are returned unmodified, with everything that messages do not contain. While contextapp
    does not respond, if the history is too large for it, or if `session` was deleted after an earlier call,
    returns all items and logs a warning. Raises the other exceptions of `contextapp_client.errors`.
    """
    encoded: list[Sequence[Message]] = yield Work(lambda: [codec.encode(item) for item in items])
    messages = [message for group in encoded for message in group]
    if not messages:
        return list(items)
    try:
        opened = session if isinstance(session, SessionCalls) else (yield from session())
        prompt: Prompt = yield from SessionCalls.sync(opened, messages, format=codec.format, **fields)
        if reconciled is not None and prompt.reconciled is not None:
            more = reconciled(prompt.reconciled["session"])
            if more is not None:
                yield from more
    except ContextAppError as error:
        if (reason := _passing(error, session)) is None:
            raise
        _logger.warning("%s, so the model receives the whole history: %s", reason, error)
        return list(items)
    shown = prompt.params["input" if codec.format == "openai-responses" else "messages"]
    restored: list[T] = yield Work(lambda: _restore(items, encoded, shown, codec))
    return restored


def _passing(error: ContextAppError, session: Opened) -> str | None:
    """Return why the agent must continue without contextapp, or None if its program or settings are wrong."""
    match error:
        case ConnectionFailed() | RateLimited() | ServerError() | Unavailable():
            return "contextapp did not respond"
        case UnexpectedResponse(status=int(status)) if status >= 500:  # of a proxy
            return "contextapp did not respond"
        case InvalidRequest(status=413):
            return "the history is too large"
        case NotFound() if isinstance(session, SessionCalls) and session.was_found:
            return "the session was deleted"
    return None


async def run(transport: BaseTransport, steps: Steps[T]) -> T:
    """Carry out steps without blocking the event loop: those of the synchronous client in a thread."""
    if isinstance(transport, AsyncTransport):
        return await transport.run(steps)
    return await asyncio.to_thread(run_blocking, transport, steps)


def run_blocking(transport: BaseTransport, steps: Steps[T]) -> T:
    """Carry out steps of the synchronous client."""
    if not isinstance(transport, SyncTransport):
        raise TypeError(
            "`AsyncContextApp` only works with the framework's asynchronous methods, such as `ainvoke`. "
            "For its synchronous methods, use `ContextApp`."
        )
    return transport.run(steps)


def usage_report(
    input_tokens: int, output_tokens: int, *, cache_read: int = 0, cache_write: int = 0
) -> dict[str, int]:
    """Return the usage of a response in Anthropic's format. `input_tokens` includes cached tokens."""
    return {
        "input_tokens": max(0, input_tokens - cache_read - cache_write),
        "cache_read_input_tokens": cache_read,
        "cache_creation_input_tokens": cache_write,
        "output_tokens": output_tokens,
    }


def _restore(
    items: Sequence[T], encoded: Sequence[Sequence[Message]], shown: Sequence[Message], codec: Codec[T]
) -> list[T]:
    """Return the original item wherever all of its messages are shown, and new items for other messages."""
    owners = [(index, place) for index, group in enumerate(encoded) for place in range(len(group))]
    sources = _sources([message for group in encoded for message in group], shown)
    restored: list[T] = []
    changed: list[Message] = []
    number = 0
    while number < len(shown):
        source = sources[number]
        index, place = (-1, -1) if source is None else owners[source]
        length = len(encoded[index]) if place == 0 else 0
        whole = [] if source is None else list(range(source, source + length))
        if whole and sources[number : number + length] == whole:
            restored += [*codec.decode(changed), items[index]]
            changed = []
            number += length
        else:
            changed.append(shown[number])
            number += 1
    return [*restored, *codec.decode(changed)]


def _sources(sent: Sequence[Message], shown: Sequence[Message]) -> list[int | None]:
    """Return the position in `sent` of each shown message, in ascending order; None if it was not sent."""
    positions: dict[str, list[int]] = {}
    for position, message in enumerate(sent):
        positions.setdefault(_canonical(message), []).append(position)
    found: list[int | None] = []
    start = 0
    for message in shown:
        candidates = positions.get(_canonical(message), [])
        place = bisect_left(candidates, start)
        found.append(candidates[place] if place < len(candidates) else None)
        start = start if found[-1] is None else found[-1] + 1
    return found


def _canonical(message: Message) -> str:
    return json.dumps(message, sort_keys=True)
