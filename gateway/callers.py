"""Callers: the project of an API key with its gateway settings, kept for when the store is unavailable."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection

from accounts.models import ApiKey, Scope
from accounts.selectors import api_key_find, api_keys_valid, provider_secrets
from gateway.calls import KeyProof
from sessions.services.targets import ForbiddenAddress, url_check

T = TypeVar("T")

log = logging.getLogger(__name__)

#: Seconds for which a key is cached, seconds to wait for the store, and seconds without another attempt after
#: a failure.
_CACHE_SECONDS = 5.0
_PATIENCE = 1.0
_PAUSE = 5.0

#: Seconds to wait for the store if the settings of a key's project are not known.
_FIRST_PATIENCE = 10.0

#: Seconds between two reads of all keys.
_READ_ALL_SECONDS = 60.0

#: Maximum number of keys in the cache before invalid ones are dropped.
_CACHE_SIZE = 100_000

#: Modes in which the calls of a project are handled.
OBSERVE, COMPACT = "observe", "compact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """An API key and its project's settings.

    `upstreams` are the URLs that the project sets, None for one that is no longer allowed. `row` is the key
    with its project.
    """

    key: KeyProof
    row: ApiKey = field(repr=False)
    mode: str = OBSERVE
    upstreams: Mapping[str, str | None] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    adds_usage: bool = False
    compacts_subscriptions: bool = False


class SettingsUnknown(Exception):
    """The store does not respond, and it is not known to which provider a key's project sends its calls."""


class Callers:
    """The cached callers of this process, by the hash of their key.

    All keys are read regularly, so that calls with any of them are forwarded while the store is down.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[float, Caller | None]] = {}
        self._down_until = 0.0
        # Not the default threads, which resolve the names of the providers: a store that hangs may block all.
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="callers")
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to read all keys regularly. Returns when they are read, or the store is slow."""
        first = asyncio.create_task(self._read_keys())
        self._reading = asyncio.create_task(self._read_regularly(first))
        await asyncio.wait({first}, timeout=_PATIENCE)

    def stop(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    async def find(self, text: str) -> Caller | None:
        """Return the caller with this key, or None if the key is malformed, unknown, expired or revoked.

        If the store does not respond, returns what it found for this key before. Raises `SettingsUnknown` if
        it has not read this key yet.
        """
        proof = KeyProof.of(text)
        if proof is None:
            return None
        now = time.monotonic()
        known = self._known.get(proof.id)
        if known is not None and now < max(known[0], self._down_until):
            return known[1]
        try:
            reading = self._in_thread(_read, text, proof)
            found = await asyncio.wait_for(reading, _FIRST_PATIENCE if known is None else _PATIENCE)
        except (DatabaseError, TimeoutError) as error:
            log.warning("The database does not respond (%s). Keys are not verified.", type(error).__name__)
            self._down_until = time.monotonic() + _PAUSE
            if known is None:
                raise SettingsUnknown from None
            return known[1]
        if found is None and len(self._known) >= _CACHE_SIZE:
            self._known = {id: each for id, each in self._known.items() if each[1] is not None}
        self._known[proof.id] = (time.monotonic() + _CACHE_SECONDS, found)
        return found

    async def _read_regularly(self, first: asyncio.Task[bool]) -> None:
        is_read = await first
        while True:
            await asyncio.sleep(_READ_ALL_SECONDS if is_read else _PAUSE)
            is_read = await self._read_keys()

    async def _read_keys(self) -> bool:
        """Read all keys. Return whether this was possible."""
        started = time.monotonic()
        try:
            found = await self._in_thread(_read_all)
        except Exception as error:
            log.info("The API keys cannot be read (%s).", type(error).__name__)
            return False
        newer = {id: each for id, each in self._known.items() if each[0] >= started + _CACHE_SECONDS}
        self._known = found | newer
        return True

    def _in_thread(self, read: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, read, *arguments)


def _read(text: str, proof: KeyProof) -> Caller | None:
    try:
        key = api_key_find(text)
    finally:
        connection.close()  # returns it to the pool
    if key is None or Scope.PUSH not in key.scopes:
        return None
    return caller_of(key, proof)


def _read_all() -> dict[bytes, tuple[float, Caller | None]]:
    try:
        keys = api_keys_valid(Scope.PUSH)
    finally:
        connection.close()
    proofs = [KeyProof(prefix=key.prefix, hash=bytes(key.hash).hex()) for key in keys]
    return {proof.id: (0.0, caller_of(key, proof)) for key, proof in zip(keys, proofs, strict=True)}


def caller_of(key: ApiKey, proof: KeyProof) -> Caller:
    """Return the caller of a valid key."""
    chosen = key.project.gateway
    return Caller(
        key=proof,
        row=key,
        mode=COMPACT if chosen.get("mode") == COMPACT else OBSERVE,
        upstreams={name: _allowed(url) for name, url in chosen.get("upstreams", {}).items()},
        secrets=provider_secrets(key.project),
        adds_usage=chosen.get("adds_usage") is True,
        compacts_subscriptions=chosen.get("compacts_subscriptions") is True,
    )


def _allowed(url: str) -> str | None:
    """Return a provider's URL, or None if it is forbidden. Each new connection checks its addresses."""
    try:
        url_check(url, allow_private=settings.CONTEXTAPP_GATEWAY_ALLOW_PRIVATE)
    except ForbiddenAddress:
        return None
    return url
