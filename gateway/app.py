"""The ASGI application: authenticate, forward, record."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import replace

from django.conf import settings
from uuid_utils.compat import uuid7

from gateway import upstream
from gateway.callers import COMPACT, Caller, Callers, SettingsUnknown
from gateway.calls import Call, kept_headers
from gateway.compact import Compactor
from gateway.credentials import Credentials, credentials_of
from gateway.encodings import decoded_or_empty
from gateway.exchange import REPORT, Copy, Cut, Forward, call_answered, call_forwarded, exchange
from gateway.http import Body, Disconnected, Receive, Refused, Scope, Send, TooLarge, header_text, respond
from gateway.metrics import metrics
from gateway.options import budget_check, is_bypassed, mode_of
from gateway.providers import Provider
from gateway.recording.recorder import Recorder
from gateway.recording.sessions import is_of_session
from gateway.routing import NO_SUCH_URL, Route, route_of
from gateway.status import serve_status
from gateway.summaries import Summaries
from sessions.services.reconcile.served import NotServable, Reason
from sessions.services.reconcile.splice import Served

log = logging.getLogger(__name__)

#: Seconds that a request waits in compact mode until the previous calls of its session are recorded.
_RECORDING_PATIENCE = 1.0


class Gateway:
    """The application. `upstreams` are the providers' URLs by name; projects can override them."""

    def __init__(
        self,
        *,
        recorder: Recorder,
        callers: Callers,
        compactor: Compactor,
        upstreams: Mapping[str, str],
        most_bytes: int,
    ) -> None:
        self._recorder = recorder
        self._callers = callers
        self._compactor = compactor
        self._upstreams = upstreams
        self._most_bytes = most_bytes
        self._http = upstream.Client()
        self._summaries = Summaries(self._http)
        self._recording: set[asyncio.Task[None]] = set()
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self._callers.start()
                self._recorder.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                self._callers.stop()
                self._summaries.stop()
                await self._finish()
                await self._recorder.stop()
                await self._http.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in {"/healthz", "/metrics"}:
            await serve_status(scope, send)
            return
        raw_path = scope.get("raw_path") or scope["path"].encode()
        route = route_of(scope["method"], raw_path.partition(b"?")[0], scope["query_string"])
        if route is None:
            await respond(send, 404, NO_SUCH_URL)
            return
        body = Body(receive)
        try:
            await self._forward(route, scope, body, receive, send)
        except Refused as error:
            await body.discard(most=self._most_bytes)
            text = route.provider.error(error.kind, str(error))
            added = [(REPORT, b"refused")]
            if error.status < 500:  # otherwise, Claude Code repeats a call with a wrong key for three minutes
                added.append((b"x-should-retry", b"false"))
            await respond(send, error.status, text, added)
        except Disconnected:
            return

    async def _forward(
        self, route: Route, scope: Scope, received: Body, receive: Receive, send: Send
    ) -> None:
        headers = list(scope["headers"])
        if any(name == b"upgrade" and b"websocket" in value.lower() for name, value in headers):
            raise Refused(426, "invalid_request_error", "WebSockets are not supported. Use HTTP.")
        credentials = credentials_of(headers, url_key=route.key, query=route.query)
        caller = await self._caller(credentials)
        named = dict(headers)
        mode = mode_of(named) or caller.mode
        is_recorded = bool(route.endpoint.name) and not is_bypassed(named)
        budget_check(named)
        try:
            body = await received.read(most=self._most_bytes)
        except TooLarge:
            text = f"The request exceeds {self._most_bytes:,} bytes."
            raise Refused(413, "request_too_large", text) from None
        started, at = time.monotonic(), time.time()
        if is_recorded:
            body = _prepared(body, route.provider, route.endpoint.name, caller, mode)
        forward = self._forward_of(route, scope["method"], headers, body, credentials, caller)
        call = _call(route, headers, body, caller, forward, at, mode)
        served: Served | None = None
        if is_recorded:
            forward, served = await self._compacted(forward, call, caller, credentials)
        if served is not None:
            call = call_forwarded(call, served)
        metrics().overhead.observe(time.monotonic() - started)
        await self._exchange(forward, call, served, receive, send, is_recorded=is_recorded)

    async def _exchange(
        self,
        forward: Forward,
        call: Call,
        served: Served | None,
        receive: Receive,
        send: Send,
        *,
        is_recorded: bool,
    ) -> None:
        """Forward the request, and record the call when it has ended. Raises `Cut`."""
        copy = Copy(most_bytes=self._most_bytes if is_recorded else 0)
        self._open += 1
        if is_recorded:
            self._recorder.prepare()
        try:
            with metrics().open.track_inprogress():
                await exchange(self._http, forward, receive, send, copy)
        finally:  # even if the server cancels this task because the agent has disconnected
            metrics().calls.labels(call.provider, call.endpoint or "other", copy.status).inc()
            if is_recorded:
                call = call_answered(call, copy, is_passed=forward.repairs and served is None)
                self._record(call)
            if served is not None:
                self._summarize(forward, served, call)
            self._open -= 1
        if copy.status and not copy.is_complete:
            raise Cut

    async def settle(self) -> None:
        """Return when every response is sent, and every call and summary is recorded."""
        await self._finish()
        await self._recorder.settle()
        await self._summaries.settle()

    async def _finish(self) -> None:
        """Return when every response is sent and its call is in the queue or on disk."""
        while self._open or self._recording:
            await asyncio.sleep(0.01)

    def _summarize(self, forward: Forward, served: Served, call: Call) -> None:
        """Request a summary if one is needed, or stop using one that the provider has rejected."""
        if served.summary is not None and call.status == 200:
            self._summaries.start(forward, served.summary)
        if served.block_session is not None and call.status == 400:
            response = decoded_or_empty(call.response, call.response_encoding)
            self._summaries.reject(served.block_session, response)

    def _record(self, call: Call) -> None:
        task = asyncio.create_task(self._recorder.add(call))
        self._recording.add(task)
        task.add_done_callback(self._recording.discard)

    async def _caller(self, credentials: Credentials) -> Caller:
        """Return the caller. Raises `Refused`."""
        if not credentials.key:
            text = "No contextapp API key. Send it as `X-Contextapp-Key: ctx_…`, or in the URL."
            raise Refused(401, "authentication_error", text)
        try:
            caller = await self._callers.find(credentials.key)
        except SettingsUnknown:
            text = "The database does not respond, and the settings of the API key's project are unknown."
            raise Refused(503, "api_error", text) from None
        if caller is None:
            text = "The contextapp API key is unknown, expired or revoked, or lacks the scope `push`."
            raise Refused(401, "authentication_error", text)
        return caller

    def _forward_of(
        self,
        route: Route,
        method: str,
        headers: list[tuple[bytes, bytes]],
        body: bytes,
        credentials: Credentials,
        caller: Caller,
    ) -> Forward:
        """Return the request to the provider. Raises `Refused`."""
        name = route.provider.name
        sent = upstream.request_headers(headers, without=credentials.replaced)
        if credentials.needs_provider_key:
            secret = caller.secrets.get(name)
            if secret is None:
                label = route.provider.label
                text = f"The project has no {label} API key. Set one on the Connect page, or send your own."
                raise Refused(401, "authentication_error", text)
            sent += route.provider.credential_headers(secret)
        address = caller.upstreams.get(name, self._upstreams[name])
        if address is None:
            raise Refused(502, "api_error", "The project's provider URL is not allowed.")
        target = route.path + (b"?" + credentials.query if credentials.query else b"")
        if not target.isascii():
            raise Refused(400, "invalid_request_error", "The URL contains characters that must be encoded.")
        url, target = upstream.url_of(address, target, route.endpoint.lacks_version)
        return Forward(
            provider=route.provider,
            method=method,
            url=url,
            target=target,
            headers=sent,
            body=body,
            only_public=name in caller.upstreams and not settings.CONTEXTAPP_GATEWAY_ALLOW_PRIVATE,
            extra=[(REPORT, b"observe")],
        )

    async def _compacted(
        self, forward: Forward, call: Call, caller: Caller, credentials: Credentials
    ) -> tuple[Forward, Served | None]:
        """Return the request with the edits of its session, in compact mode, and these."""
        if call.mode != COMPACT or call.endpoint in forward.provider.side_endpoints:
            named = forward.provider.identity(call.headers, {}).session
            session = [(b"x-contextapp-session", header_text(named))] if named else []
            return replace(forward, extra=[*forward.extra, *session]), None
        try:
            if credentials.is_subscription and not caller.compacts_subscriptions:
                raise NotServable(Reason.SUBSCRIPTION)
            await self._recorder.wait_for(is_of_session(call), seconds=_RECORDING_PATIENCE)
            result = await self._compactor.serve(call, caller)
        except NotServable as error:
            extra = [(REPORT, f"passthrough; reason={error.reason}".encode())]
            return replace(forward, extra=extra, repairs=True), None
        mode = "compact" + "; engine=provider" * result.is_by_provider
        mode += f"; tokens_before={result.tokens_before}; tokens_after={result.tokens_after}"
        mode += "; thinking=removed" * result.is_repaired
        extra = [(REPORT, mode.encode()), (b"x-contextapp-session", header_text(result.session))]
        headers = upstream.with_betas(forward.headers, result.betas)
        return replace(forward, body=result.body, headers=headers, extra=extra, repairs=True), result


def _prepared(body: bytes, provider: Provider, endpoint: str, caller: Caller, mode: str) -> bytes:
    """Return the body with what the project's settings add, in a form that can be compacted."""
    body = provider.with_usage(endpoint, body) if caller.adds_usage else body
    return provider.compactable(endpoint, body) if mode == COMPACT else body


def _call(
    route: Route,
    headers: list[tuple[bytes, bytes]],
    body: bytes,
    caller: Caller,
    forward: Forward,
    at: float,
    mode: str,
) -> Call:
    return Call(
        id=uuid7().hex,
        at=at,
        provider=route.provider.name,
        endpoint=route.endpoint.name,
        model=route.endpoint.model,
        upstream=f"{forward.url.scheme}://{forward.url.netloc.decode()}",
        mode=mode,
        key=caller.key,
        headers=kept_headers(headers),
        body=body,
    )
