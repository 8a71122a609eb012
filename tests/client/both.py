"""The synchronous client, and the asynchronous client with the same interface, for tests of both."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from contextapp_client import AsyncContextApp, AsyncSession, ContextApp


class EventLoop:
    """An event loop in a separate thread: Playwright runs one in the thread of the tests."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)


class Waiting:
    """An object whose calls are awaited in an event loop."""

    def __init__(self, awaited: Any, loop: EventLoop) -> None:
        self._awaited = awaited
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._awaited, name)
        return self._waiting(found) if inspect.ismethod(found) else found

    def _waiting(self, method: Any) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            if isinstance(result, AsyncIterator):
                return iter(self._loop.run(_all(result)))
            result = self._loop.run(result)
            return Waiting(result, self._loop) if isinstance(result, AsyncSession) else result

        return called


async def _all(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


class Connect:
    """Creates clients of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._loop = EventLoop() if kind == "async" else None
        self._opened: list[Any] = []

    def __call__(self, url: str, key: str = "ctx_key", **options: Any) -> Any:
        app: Any
        if self._loop is None:
            app = ContextApp(url, key, **options)
        else:
            app = Waiting(AsyncContextApp(url, key, **options), self._loop)
        self._opened.append(app)
        return app

    def stop(self) -> None:
        for app in self._opened:
            app.close()
        if self._loop is not None:
            self._loop.stop()
