"""Request summaries from the provider while the agent continues, and store them with their session."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import httpx2
import orjson
from django.db import Error as DatabaseError
from django.db import connection

from compaction.on_demand import BETA, OnDemandSummary
from gateway import upstream
from gateway.exchange import Forward
from sessions.services.compactions.on_demand import NotReplaceable, SummaryRequested, summary_record
from sessions.services.compactions.rejected_summary import rejection_of, summary_reject
from sessions.services.reconcile.splice import SummaryNeeded

log = logging.getLogger(__name__)

#: Seconds to wait for a summary.
_PATIENCE = 300

#: Maximum size of the response with a summary in bytes.
_MOST_BYTES = 2**22

_ENCODING = b"accept-encoding"


class Summaries:
    """The requests for summaries of this process, at most one at a time for each session."""

    def __init__(self, http: upstream.Client) -> None:
        self._http = http
        self._open: dict[UUID, asyncio.Task[None]] = {}
        self._rejected: set[asyncio.Future[None]] = set()
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="summaries")

    def start(self, forward: Forward, needed: SummaryNeeded) -> None:
        """Request a summary with the headers of the agent's request, unless one is in progress."""
        session_id = needed.requested.session_id
        if session_id not in self._open:
            self._open[session_id] = task = asyncio.create_task(self._request(forward, needed))
            task.add_done_callback(lambda _: self._open.pop(session_id))

    def reject(self, session_id: UUID, response: bytes) -> None:
        """Stop using the summaries of a session if the error response names the one in the request."""
        if reason := rejection_of(response):
            loop = asyncio.get_running_loop()
            stored = loop.run_in_executor(self._threads, _reject, session_id, reason)
            self._rejected.add(stored)
            stored.add_done_callback(self._rejected.discard)

    async def settle(self) -> None:
        """Return when no request is in progress."""
        await asyncio.gather(*self._open.values(), *self._rejected, return_exceptions=True)

    def stop(self) -> None:
        """Give up the requests in progress. The next process repeats them."""
        for task in list(self._open.values()):
            task.cancel()

    async def _request(self, forward: Forward, needed: SummaryNeeded) -> None:
        """Request a summary, and store it or the reason why there is none."""
        try:
            async with asyncio.timeout(_PATIENCE):
                summary = await self._summary(forward, needed.body)
        except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            summary = OnDemandSummary(reason=f"the provider returned no summary ({type(error).__name__})")
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, _store, needed.requested, summary)

    async def _summary(self, forward: Forward, body: bytes) -> OnDemandSummary:
        plain = [(name, value) for name, value in forward.headers if name.lower() != _ENCODING]
        headers = upstream.with_betas([*plain, (_ENCODING, b"identity")], [BETA])
        response = await upstream.send(
            self._http, forward.method, forward.url, headers, body, only_public=forward.only_public
        )
        data = bytearray()
        try:
            async for part in response.aiter_bytes():
                data += part
                if len(data) > _MOST_BYTES:
                    return OnDemandSummary(reason="the response of the provider is too large")
        finally:
            await response.aclose()
        if response.status_code != 200:
            return OnDemandSummary(reason=f"the provider returned status {response.status_code}")
        try:
            return OnDemandSummary.of(orjson.loads(data))
        except orjson.JSONDecodeError:
            return OnDemandSummary.of(None)


def _reject(session_id: UUID, reason: str) -> None:
    try:
        summary_reject(session_id, reason=reason)
    except DatabaseError as error:
        log.warning("A summary that the provider rejected could not be removed: %s", error)
    finally:
        connection.close()


def _store(requested: SummaryRequested, summary: OnDemandSummary) -> None:
    try:
        summary_record(requested, summary)
    except (DatabaseError, NotReplaceable) as error:
        log.warning("The provider's summary could not be stored: %s", error)
    finally:
        connection.close()
