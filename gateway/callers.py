"""Callers: the project of an API key with its gateway settings, cached for when the store is unavailable."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection

from accounts.models import ApiKey, Scope
from accounts.selectors import api_key_find, provider_secrets
from gateway.calls import KeyProof
from sessions.services.targets import ForbiddenAddress, url_check

log = logging.getLogger(__name__)

#: Seconds for which a key is cached, seconds to wait for the store, and seconds without another attempt after
#: a failure.
_CACHE_SECONDS = 5.0
_PATIENCE = 1.0
_PAUSE = 5.0

_CACHE_SIZE = 10_000

#: Modes in which the calls of a project are handled.
OBSERVE, COMPACT = "observe", "compact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """An API key and its project's settings. `is_verified` is false if the store did not respond.

    `upstreams` are the URLs that the project sets, None for one that is no longer allowed. `row` is the key
    with its project, None if the store did not respond.
    """

    key: KeyProof
    row: ApiKey | None = field(default=None, repr=False)
    is_verified: bool = True
    mode: str = OBSERVE
    upstreams: Mapping[str, str | None] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    adds_usage: bool = False
    compacts_subscriptions: bool = False


class Callers:
    """The cached callers of this process, by the hash of their key."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[float, Caller | None]] = {}
        self._down_until = 0.0
        # Not the default threads, which resolve the names of the providers: a store that hangs may block all.
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="callers")

    async def find(self, text: str) -> Caller | None:
        """Return the caller with this key, or None if the key is malformed, unknown, expired or revoked.

        If the store does not respond, returns what it found for this key before, or for a new key a caller
        without settings.
        """
        proof = KeyProof.of(text)
        if proof is None:
            return None
        now = time.monotonic()
        until, fallback = self._known.get(proof.id, (0.0, Caller(key=proof, is_verified=False)))
        if now < max(until, self._down_until):
            return fallback
        try:
            reading = asyncio.get_running_loop().run_in_executor(self._threads, _read, text, proof)
            found = await asyncio.wait_for(reading, _PATIENCE)
        except (DatabaseError, TimeoutError) as error:
            log.warning("The database does not respond (%s). Keys are not verified.", type(error).__name__)
            self._down_until = time.monotonic() + _PAUSE
            return fallback
        if len(self._known) >= _CACHE_SIZE:
            self._known.clear()
        self._known[proof.id] = (time.monotonic() + _CACHE_SECONDS, found)
        return found


def _read(text: str, proof: KeyProof) -> Caller | None:
    try:
        key = api_key_find(text)
    finally:
        connection.close()  # returns it to the pool
    if key is None or Scope.PUSH not in key.scopes:
        return None
    return caller_of(key, proof)


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
