"""Calls that are described once, and have a synchronous and an asynchronous form.

    class SessionCalls:
        @call
        def info(self) -> Steps[types.SessionInfo]:
            return self._json("GET")

    class Session(SyncCaller, SessionCalls): ...  # session.info()
    class AsyncSession(AsyncCaller, SessionCalls): ...  # await session.info()

`SessionCalls.info(session)` returns the steps, which may be a part of other calls.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from contextapp_client.steps import Steps
from contextapp_client.transport import AsyncTransport, BaseTransport, SyncTransport

P = ParamSpec("P")
T = TypeVar("T")
Description = TypeVar("Description")
Blocking = TypeVar("Blocking")
Awaited = TypeVar("Awaited")


class SyncCaller:
    """An object whose calls block until their result is known."""

    transport: SyncTransport


class AsyncCaller:
    """An object whose calls are awaited."""

    transport: AsyncTransport


class Call(Generic[Description, Blocking, Awaited]):
    """A method with two forms. The class of the object determines which of them is called."""

    def __init__(self, description: Any, blocking: Any, awaited: Any) -> None:
        self._functions = [description, blocking, awaited]
        self.__doc__ = description.__doc__

    @overload
    def __get__(self, caller: None, owner: type) -> Description: ...
    @overload
    def __get__(self, caller: SyncCaller, owner: type) -> Blocking: ...
    @overload
    def __get__(self, caller: AsyncCaller, owner: type) -> Awaited: ...
    def __get__(self, caller: object, owner: type) -> Any:
        description, blocking, awaited = self._functions
        function = description
        if issubclass(owner, SyncCaller):
            function = blocking
        elif issubclass(owner, AsyncCaller):
            function = awaited
        return function if caller is None else MethodType(function, caller)


def _form(description: Any, form: Any, returns: str) -> Any:
    """Return a form of a call with the name, documentation and signature of its description."""
    functools.update_wrapper(form, description)
    signature = inspect.signature(description)
    described = str(signature.return_annotation)  # Steps[T] or Pages[T]
    result = returns.format(described[described.index("[") + 1 : -1])
    form.__signature__ = signature.replace(return_annotation=result)
    return form


def call(
    description: Callable[Concatenate[Any, P], Steps[T]],
) -> Call[Callable[Concatenate[Any, P], Steps[T]], Callable[P, T], Callable[P, Coroutine[Any, Any, T]]]:
    """Return the call that a method describes by its steps."""

    def blocking(caller: Any, *args: Any, **kwargs: Any) -> Any:
        return caller.transport.run(description(caller, *args, **kwargs))

    async def awaited(caller: Any, *args: Any, **kwargs: Any) -> Any:
        return await caller.transport.run(description(caller, *args, **kwargs))

    return Call(description, _form(description, blocking, "{}"), _form(description, awaited, "{}"))


@dataclass(frozen=True, slots=True)
class Pages(Generic[T]):
    """A list that is divided into pages."""

    transport: BaseTransport
    path: tuple[str, ...]
    query: Mapping[str, object]

    def page(self, cursor: str | None) -> Steps[Any]:
        return self.transport.json("GET", *self.path, query={**self.query, "cursor": cursor})

    def items(self) -> Steps[list[T]]:
        """Return the items of all pages."""
        page = yield from self.page(None)
        items: list[T] = page["data"]
        while cursor := page.get("next_cursor"):
            page = yield from self.page(cursor)
            items += page["data"]
        return items


def pages(
    description: Callable[Concatenate[Any, P], Pages[T]],
) -> Call[Callable[Concatenate[Any, P], Pages[T]], Callable[P, Iterator[T]], Callable[P, AsyncIterator[T]]]:
    """Return the call that iterates over the described list. Each page is fetched when it is needed."""

    def blocking(caller: Any, *args: Any, **kwargs: Any) -> Iterator[T]:
        found = description(caller, *args, **kwargs)
        cursor: str | None = None
        while True:
            page = caller.transport.run(found.page(cursor))
            yield from page["data"]
            if not (cursor := page.get("next_cursor")):
                return

    async def awaited(caller: Any, *args: Any, **kwargs: Any) -> AsyncIterator[T]:
        found = description(caller, *args, **kwargs)
        cursor: str | None = None
        while True:
            page = await caller.transport.run(found.page(cursor))
            for item in page["data"]:
                yield item
            if not (cursor := page.get("next_cursor")):
                return

    return Call(
        description,
        _form(description, blocking, "Iterator[{}]"),
        _form(description, awaited, "AsyncIterator[{}]"),
    )
