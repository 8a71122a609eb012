"""Compact mode: forward a request with the edits of its session, or unchanged if they are not known."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.db import Error as DatabaseError
from django.db import connection

from compaction.adapters.tokenizer import tokenizer
from gateway.callers import Caller
from gateway.calls import Call
from gateway.providers import PROVIDERS
from gateway.providers.base import Identity, text
from gateway.recording.sessions import Place, caller_id, session_find_for_call
from redaction import Redaction
from sessions.models import ClientHistory
from sessions.selectors.prompts.provider_engine import session_provider_params
from sessions.selectors.redaction import redaction_of
from sessions.services.reconcile.reading import history_read
from sessions.services.reconcile.served import Edits, NotServable, Reason, edits_for_request
from sessions.services.reconcile.splice import Served, SessionParams, edits_splice, parameters_apply
from sessions.services.reconcile.values import InvalidHistory, Sent
from sessions.store.rawjson import BadJson, RawFields

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")

log = logging.getLogger(__name__)

#: Seconds that a request waits for the edits of its session, and for its compaction.
PATIENCE = 0.15
COMPACTION_PATIENCE = 2.0

#: Maximum number of sessions whose last edits are kept in memory.
_KEPT = 500

#: Number of requests that load their edits at the same time.
_THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The edits of a session and what is needed to apply them without the store."""

    edits: Edits
    redaction: Redaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A recorded session that a client names, and its external id."""

    id: UUID
    name: str


class _Key(NamedTuple):
    """The session of a client. `name` is "" if the client does not name it."""

    caller: bytes
    provider: str
    upstream: str
    name: str


class Compactor:
    """Applies edits to requests. Keeps the last edits of each session for when the store does not respond."""

    def __init__(self, *, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._known: OrderedDict[_Key, Known] = OrderedDict()
        #: The last compaction of each session's last request, and the messages at its last change.
        self._last: OrderedDict[UUID, tuple[int, int]] = OrderedDict()
        self._found: OrderedDict[tuple[bytes, str], Found] = OrderedDict()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="compactor")
        #: Requests wait for a free thread here: the queue of the threads would keep those that have given up.
        self._free = asyncio.Semaphore(_THREADS)
        #: They never wait for the store.
        self._splicing = ThreadPoolExecutor(4, thread_name_prefix="splice")

    async def serve(self, call: Call, caller: Caller) -> Served:
        """Return the request with the edits in force. Raises `NotServable` to have it forwarded unchanged."""
        if call.headers.get("content-encoding"):
            raise NotServable(Reason.ENCODING)
        try:
            fields = RawFields.of(call.body)
            provider = PROVIDERS[call.provider]
            if provider.uses_stored(call.endpoint, fields):
                if not provider.compacts_stored:
                    raise NotServable(Reason.SERVER_STATE)
                return await self._with_provider(call, caller, fields)
            return await self._served(call, caller, fields)
        except NotServable:
            raise
        except (BadJson, InvalidHistory):
            raise NotServable(Reason.UNREADABLE) from None
        except Exception as error:  # the agent's call must not fail; the message may contain its contents
            log.error("Call %s cannot be compacted (%s).", call.id, type(error).__name__)
            raise NotServable(Reason.ERROR) from None

    async def _with_provider(self, call: Call, caller: Caller, fields: Mapping[str, Any]) -> Served:
        """Return a request to which the provider adds stored messages: only the provider can compact them.

        Raises `NotServable` unless its engine is set, and the errors of reading the request.
        """
        try:
            async with asyncio.timeout(self._patience):
                params = await asyncio.shield(await self._start(_load_params, call, caller, fields))
        except (TimeoutError, DatabaseError):
            params = None
        if params is None:
            raise NotServable(Reason.SERVER_STATE)
        return parameters_apply(params, call.body, fields)

    async def _served(self, call: Call, caller: Caller, fields: Mapping[str, Any]) -> Served:
        """Return the request with the edits in force. Raises `NotServable` and the errors of reading it."""
        identity = PROVIDERS[call.provider].identity(call.headers, fields)
        name = f"{identity.session}/{identity.agent}" if identity.session else ""
        key = _Key(caller.key.id, call.provider, call.upstream, name)
        field = PROVIDERS[call.provider].history_field(call.endpoint)
        loop = asyncio.get_running_loop()
        forwarded, limit = Event(), asyncio.timeout(self._patience)
        model = call.model or text(fields.get("model"))
        sent = Sent(
            model=model,
            is_side=identity.is_side,
            is_compacted=identity.is_compacted,
            is_forwarded=forwarded.is_set,
            on_compaction=partial(loop.call_soon_threadsafe, _extend, limit),
        )
        loading: asyncio.Future[Known | None] | None = None
        try:
            async with limit:
                loading = await self._start(self._load, call, caller, fields, identity, sent, name)
                known = await asyncio.shield(loading)
        except (TimeoutError, DatabaseError) as error:
            forwarded.set()
            if loading is not None:
                loading.add_done_callback(partial(self._keep, key))
            known = self._known.get(key)
            if not name:
                known = await loop.run_in_executor(self._splicing, self._unnamed, key, call.body, field)
            if known is None:
                reason = Reason.TIMEOUT if isinstance(error, TimeoutError) else Reason.STORE
                raise NotServable(reason) from None
            known = replace(known, edits=replace(known.edits, on_demand=None))
        if known is None:
            self._threads.submit(tokenizer)  # the next call of the session needs it
            raise NotServable(Reason.NEW)
        _put(self._known, key if name else _key_of(key, known), known)
        return await self._applied(known, call, model=model, field=field)

    async def _applied(self, known: Known, call: Call, *, model: str, field: str) -> Served:
        """Return the request with these edits. Notes how many messages it has if they are new."""
        edits = known.edits
        last, until = self._last.get(edits.session_id, (edits.compaction, 0))
        are_new = last != edits.compaction
        apply = partial(
            edits_splice,
            edits,
            call.body,
            redaction=known.redaction,
            model=model,
            field=field,
            others_until=sys.maxsize if are_new else until,
        )
        served = await asyncio.get_running_loop().run_in_executor(self._splicing, apply)
        _put(self._last, edits.session_id, (edits.compaction, served.count if are_new else until))
        return served

    async def _start(self, load: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        """Call a function in a thread, once one is free."""
        await self._free.acquire()
        loading = asyncio.get_running_loop().run_in_executor(self._threads, load, *arguments)
        loading.add_done_callback(lambda _: self._free.release())
        return loading

    def _keep(self, key: _Key, loading: asyncio.Future[Known | None]) -> None:
        """Keep edits for the next request that were loaded after this one was forwarded."""
        if loading.cancelled() or loading.exception() is not None or (known := loading.result()) is None:
            return
        key = key if key.name else _key_of(key, known)
        newest = self._known.get(key)
        if newest is None or newest.edits.history.count <= known.edits.history.count:
            _put(self._known, key, known)

    def _unnamed(self, key: _Key, body: bytes, field: str) -> Known | None:
        """Return the kept edits of the longest history with which a request begins, or None."""
        kept = [known for each, known in [*self._known.items()] if each[:3] == key[:3]]
        if not kept:
            return None
        reading = history_read(body, redaction=kept[0].redaction, field=field)

        def is_begun(history: ClientHistory) -> bool:
            return reading.digest_at(history.count) == bytes(history.digest)

        begun = [known for known in kept if is_begun(known.edits.history)]
        return max(begun, key=lambda known: known.edits.history.count, default=None)

    def _load(
        self,
        call: Call,
        caller: Caller,
        fields: Mapping[str, Any],
        identity: Identity,
        sent: Sent,
        name: str,
    ) -> Known | None:
        """Return the edits of the call's session, or None if the session is not recorded yet."""
        try:
            key = caller.row
            partition = caller_id(call, key)
            read = partial(_edits, call, sent, redaction_of(key.project))
            known_as = self._found.get((partition, name)) if name else None
            if known_as is not None:
                try:
                    return read(known_as)
                except NotServable as error:
                    if error.reason is not Reason.HISTORY:
                        raise
                    self._found.pop((partition, name), None)  # the name may be that of another session now
            session = session_find_for_call(Place.of(call, key, identity, body=call.body, fields=fields))
            if session is None:
                return None
            found = Found(id=session.pk, name=session.external_id)
            if found == known_as:
                raise NotServable(Reason.HISTORY)
            known = read(found)
            if name:
                _put(self._found, (partition, name), found)
            return known
        finally:
            connection.close()


def _extend(limit: asyncio.Timeout) -> None:
    """Let a request wait for a compaction, without which it would exceed its budget."""
    with suppress(RuntimeError):  # it has expired
        limit.reschedule(asyncio.get_running_loop().time() + COMPACTION_PATIENCE)


def _key_of(key: _Key, known: Known) -> _Key:
    """Return the key under which the edits of an unnamed session are kept."""
    return key._replace(name=known.edits.session_id.hex)


def _put(cache: OrderedDict[K, V], key: K, value: V) -> None:
    """Add a value, and remove the oldest one if there are too many."""
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > _KEPT:
        cache.popitem(last=False)


def _load_params(call: Call, caller: Caller, fields: Mapping[str, Any]) -> SessionParams | None:
    """Return the parameters of the provider's engine for the call's session, or None."""
    try:
        key = caller.row
        identity = PROVIDERS[call.provider].identity(call.headers, fields)
        session = session_find_for_call(Place.of(call, key, identity, body=call.body, fields=fields))
        if session is None or (params := session_provider_params(session)) is None:
            return None
        return SessionParams(name=session.external_id, tokens=session.last_prompt_tokens, provider=params)
    finally:
        connection.close()


def _edits(call: Call, sent: Sent, redaction: Redaction, found: Found) -> Known:
    edits = edits_for_request(
        found.id,
        call.body,
        name=found.name,
        sent=sent,
        redaction=redaction,
        field=PROVIDERS[call.provider].history_field(call.endpoint),
    )
    return Known(edits=edits, redaction=redaction)
