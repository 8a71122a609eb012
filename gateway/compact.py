"""Compact mode: forward a request with the edits of its session, or unchanged if they are not known."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import orjson
from django.db import Error as DatabaseError
from django.db import connection

from gateway.callers import Caller
from gateway.calls import Call
from gateway.providers import PROVIDERS, Identity
from gateway.providers.base import mapping, text
from gateway.recording.record import KeyInvalid, caller_id, key_find
from gateway.recording.sessions import Place, session_find_of
from redaction import Redaction
from sessions.selectors.redaction import redaction_of
from sessions.services.reconcile.served import Edits, NotServable, edits_for_request
from sessions.services.reconcile.splice import Served, edits_apply
from sessions.services.reconcile.values import InvalidHistory
from sessions.store.rawjson import BadJson

log = logging.getLogger(__name__)

#: Seconds that a request waits for the edits of its session.
PATIENCE = 0.15

#: Maximum number of sessions whose last edits are kept in memory.
_KEPT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Passthrough:
    """A request that is forwarded unchanged, and one word for the reason."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The edits of a session and what is needed to apply them without the store."""

    edits: Edits
    redaction: Redaction


class Compactor:
    """Applies edits to requests. Keeps the last edits of each session for when the store does not respond."""

    def __init__(self, *, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._known: OrderedDict[tuple[str, str], Known] = OrderedDict()
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="compactor")

    async def serve(self, call: Call, caller: Caller) -> Served | Passthrough:
        """Return the request body with the edits in force, or the reason why it is forwarded unchanged."""
        if call.headers.get("content-encoding"):
            return Passthrough(reason="encoding")
        try:
            fields = orjson.loads(call.body)
            if PROVIDERS[call.provider].is_stateful(call.endpoint, mapping(fields)):
                return Passthrough(reason="server-state")
            return await self._served(call, caller, fields if isinstance(fields, dict) else {})
        except NotServable as error:
            return Passthrough(reason=str(error))
        except (BadJson, InvalidHistory, KeyInvalid, orjson.JSONDecodeError):
            return Passthrough(reason="unreadable")

    async def _served(self, call: Call, caller: Caller, fields: Mapping[str, Any]) -> Served:
        """Return the request with the edits in force. Raises `NotServable` and the errors of reading it."""
        identity = PROVIDERS[call.provider].identity(call.headers, fields)
        name = f"{identity.session}/{identity.agent}" if identity.session else ""
        loop = asyncio.get_running_loop()
        loading = loop.run_in_executor(self._threads, _load, call, fields, identity)
        try:
            known = await asyncio.wait_for(asyncio.shield(loading), self._patience)
        except (TimeoutError, DatabaseError) as error:
            loading.add_done_callback(_swallow)
            known = self._last(caller, name)
            if known is None:
                raise NotServable("timeout" if isinstance(error, TimeoutError) else "store") from None
            known = replace(known, edits=replace(known.edits, on_demand=None))
        if known is None:
            raise NotServable("new")
        if name:
            self._keep(caller, name, known)
        model = text(fields.get("model"))
        apply = partial(
            edits_apply,
            known.edits,
            call.body,
            redaction=known.redaction,
            model=model,
            field=PROVIDERS[call.provider].history_field(call.endpoint),
        )
        return await loop.run_in_executor(self._threads, apply)

    def _last(self, caller: Caller, name: str) -> Known | None:
        return self._known.get((caller.key.prefix, name)) if name else None

    def _keep(self, caller: Caller, name: str, known: Known) -> None:
        key = caller.key.prefix, name
        self._known[key] = known
        self._known.move_to_end(key)
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)


def _swallow(loading: asyncio.Future[Known | None]) -> None:
    """Ignore the error of a load whose request has already been forwarded."""
    if not loading.cancelled():
        loading.exception()


def _load(call: Call, fields: Mapping[str, Any], identity: Identity) -> Known | None:
    """Return the edits of the call's session, or None if the session is not recorded yet."""
    try:
        key = key_find(call.key)
        redaction = redaction_of(key.project)
        provider = PROVIDERS[call.provider]
        place = Place(
            call=call,
            key=key,
            identity=identity,
            history=provider.history(call.endpoint, call.body, fields),
            fields=fields,
            caller=caller_id(call, key),
            redaction=redaction,
        )
        session = session_find_of(place)
        if session is None:
            return None
        field = provider.history_field(call.endpoint)
        edits = edits_for_request(session, call.body, redaction=redaction, field=field)
        return Known(edits=edits, redaction=redaction)
    finally:
        connection.close()
