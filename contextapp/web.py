"""The application that granian serves. It receives the whole request before a thread handles it.

There are few threads, and clients may send their bodies slowly. Therefore the event loop receives the bodies,
with a deadline, and only complete requests wait for a thread. It also decodes chunked bodies, which WSGI does
not support, and rejects truncated ones. Responses are sent after the thread has finished, so clients that
read slowly do not occupy threads either.
"""

from __future__ import annotations

import asyncio
import gc
import io
import logging
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from threading import Thread
from typing import Any, Protocol

from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined]

from compaction.deadline import Deadline
from contextapp import env
from contextapp.connection_balance import ACTIVE_SECONDS, BOARD, Balance
from contextapp.process_memory import freeze_loaded
from contextapp.request_bodies import Bodies, BodyError
from contextapp.request_limits import REQUEST_SECONDS, limit_statements, request_limited, watch_client
from sessions.api.errors import error_response

log = logging.getLogger(__name__)

Environ = dict[str, Any]
Headers = list[tuple[str, str]]


class Direct(Protocol):
    """Responds to some requests with a small body on the event loop, instead of a thread."""

    async def respond(self, environ: Environ, body: bytes) -> tuple[int, Headers, bytes] | None:
        """Return status, headers and content, or None if the WSGI application has to respond."""

    def close(self) -> None: ...


#: Seconds after which a request without a free thread is rejected, because its client has given up.
QUEUE_SECONDS = 30.0

#: Threads share the interpreter with the event loop. An interval shorter than the default of 5 ms reduces the
#: time that pushes wait while a thread plans a compaction: a push waits for the interpreter several times.
_SWITCH_SECONDS = 0.0002

#: Number of new objects after which Python looks for reference cycles. With the default of 700, it did so
#: several times for each plan of a compaction, in 5% of the CPU time of pushes with a budget.
_OBJECTS_PER_COLLECTION = 10_000

#: Handled by the event loop, so that it responds even if all threads are busy.
LIVENESS = "/healthz"

#: In the environment of a request: whether its connection is closed after the response.
_CLOSES = "contextapp.closes"


class Application:
    """Serve a WSGI application with `threads` threads."""

    def __init__(
        self,
        wsgi: Callable[..., Iterable[bytes]],
        *,
        threads: int,
        bodies: Bodies,
        direct: Direct | None = None,
        balance: Balance | None = None,
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        self.wsgi, self.bodies, self.direct, self.balance = wsgi, bodies, direct, balance
        self.request_seconds = request_seconds
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="request")

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.balance is not None:
            self.balance.beat()
            loop.call_later(ACTIVE_SECONDS, self.__rsgi_init__, loop)

    async def __rsgi__(self, scope: Any, proto: Any) -> None:
        environ = environ_of(scope)
        if self.balance is not None and scope.http_version == "1.1":
            environ[_CLOSES] = self.balance.closes(scope.client)
        with self.bodies.memory_for(environ) as in_memory:
            await self._serve(scope, proto, environ, in_memory=in_memory)

    async def _serve(self, scope: Any, proto: Any, environ: Environ, *, in_memory: bool) -> None:
        try:
            body = environ["wsgi.input"] = await self.bodies.receive(environ, proto, in_memory=in_memory)
        except ProtocolClosed:
            return
        except BodyError as error:
            _send_error(proto, error)
            return
        if self.direct is not None and isinstance(body, io.BytesIO):
            answer = await self.direct.respond(environ, body.getvalue())
            if answer is not None:
                with suppress(ProtocolClosed):  # the client has disconnected
                    _send(proto, environ, *answer)
                return
        if scope.path == LIVENESS:
            self._respond(environ, proto, Deadline(self.request_seconds))
            return
        loop = asyncio.get_running_loop()
        expires, deadline = loop.time() + QUEUE_SECONDS, Deadline(self.request_seconds)
        end_watch = watch_client(proto, deadline)
        try:
            await loop.run_in_executor(
                self.pool, self._respond, environ, proto, deadline, lambda: loop.time() > expires
            )
        finally:
            end_watch()

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.direct is not None:
            self.direct.close()

    def _respond(
        self, environ: Environ, proto: Any, deadline: Deadline, is_late: Callable[[], bool] = bool
    ) -> None:
        """Handle a complete request. Runs in a thread."""
        with suppress(ProtocolClosed):  # the client has disconnected
            if is_late():
                _send_error(proto, BodyError(503, "unavailable", "The server is busy. Try again later."))
                return
            try:
                with request_limited(deadline):
                    self._handle(environ, proto)
            except ProtocolClosed:
                raise
            except Exception:
                log.exception("%s %s failed", environ["REQUEST_METHOD"], environ["PATH_INFO"])
                message = "Something went wrong on the server."
                _send_error(proto, BodyError(500, "internal_error", message))

    def _handle(self, environ: Environ, proto: Any) -> None:
        started: list[tuple[int, Headers]] = []

        def start_response(status: str, headers: Headers, exc_info: Any = None) -> None:
            started.append((int(status[:3]), headers))

        response = self.wsgi(environ, start_response)
        try:
            content = b"".join(response)
            _send(proto, environ, *started[-1], content)
        finally:
            environ["wsgi.input"].close()
            if (close := getattr(response, "close", None)) is not None:
                close()


def environ_of(scope: Any) -> Environ:
    """Return the WSGI environment of a request, without `wsgi.input`."""
    server, _, port = scope.server.rpartition(":")
    environ: Environ = {
        "SCRIPT_NAME": "",
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "SERVER_NAME": server,
        "SERVER_PORT": port,
        "REMOTE_ADDR": scope.client.rpartition(":")[0].strip("[]"),
        "REQUEST_METHOD": scope.method,
        "PATH_INFO": _wsgi_string(scope.path),
        "QUERY_STRING": _wsgi_string(scope.query_string),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.errors": sys.stderr,
        "wsgi.multiprocess": True,
        "wsgi.multithread": True,
        "wsgi.run_once": False,
        "wsgi.version": (1, 0),
    }
    if scope.authority:  # the host of HTTP/2, and of a request with an absolute URL
        environ["HTTP_HOST"] = scope.authority
    for name, value in scope.headers.items():
        _add_header(environ, name, value)
    for name in dict.fromkeys(scope.headers.keys()):  # granian omits values that are not ASCII
        if "_" not in name and name not in ("host", "content-type", "content-length"):
            environ.setdefault(f"HTTP_{name.upper().replace('-', '_')}", "")
    return environ


def _wsgi_string(text: str) -> str:
    """Return the UTF-8 bytes of `text` as WSGI represents them. Some clients do not escape their URLs."""
    return text.encode("utf-8", "replace").decode("latin-1")


def _add_header(environ: Environ, name: str, value: str) -> None:
    if "_" in name or (name == "host" and "HTTP_HOST" in environ):
        return  # `X_Forwarded_For` would be taken for `X-Forwarded-For`, which proxies remove
    key = name.upper().replace("-", "_")
    if name not in ("content-type", "content-length"):
        key = f"HTTP_{key}"
    separator = "; " if name == "cookie" else ","
    environ[key] = f"{environ[key]}{separator}{value}" if key in environ else value


def _send(proto: Any, environ: Environ, status: int, headers: Headers, content: bytes) -> None:
    if environ.get(_CLOSES):
        headers = [*headers, ("connection", "close")]
    proto.response_bytes(status, headers, content)


def _send_error(proto: Any, error: BodyError) -> None:
    kind = {503: "unavailable", 500: "internal_error"}.get(error.status, "invalid_request")
    response = error_response(error.status, kind, error.code, str(error))
    proto.response_bytes(error.status, list(response.items()), response.content)


@cache
def preload() -> None:
    """Load the code and the data that the first requests need. Leaves no thread."""
    from compaction.adapters.tokenizer import load_fastokens

    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(load_fastokens)  # takes two seconds, but hardly the interpreter
        from contextapp.wsgi import warm_up

        warm_up()
        loading.result()
    freeze_loaded()


def create() -> Application:
    """Return the application with its settings from the environment."""
    from django.conf import settings

    from contextapp.wsgi import application as wsgi
    from sessions.api.direct import DirectRequests
    from sessions.api.metrics import metrics_reserve
    from sessions.services.compactions.preparation import preparations

    metrics_reserve("counter", "histogram")
    Thread(target=preload, daemon=True).start()  # unless loaded before the process was forked
    limit = max(settings.CONTEXTAPP_MAX_BODY_BYTES, settings.CONTEXTAPP_MAX_IMPORT_BYTES) + (1 << 20)
    bodies = Bodies(limit=limit)
    threads = env.web_threads()
    seconds = env.seconds("CONTEXTAPP_REQUEST_SECONDS", REQUEST_SECONDS)
    limit_statements(seconds)
    preparations.start()
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    return Application(
        wsgi,
        threads=threads,
        bodies=bodies,
        direct=DirectRequests(),
        balance=Balance(BOARD, process=os.getpid()),
        request_seconds=seconds,
    )
