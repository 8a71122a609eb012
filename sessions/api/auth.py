"""Who calls: an API key, and what it may do."""

from __future__ import annotations

import time
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.http import HttpRequest

from accounts.models import ApiKey
from accounts.selectors import api_key_find
from accounts.services import api_key_use_record
from pricing.custom import CustomPrice
from redaction import Redaction
from sessions.api.errors import NotAuthenticated
from sessions.selectors.custom_prices import custom_prices
from sessions.selectors.redaction import redaction_of
from sessions.store.postgres import execute, raw_connection

#: Seconds for which a process trusts what it read of a key. That the key still lives is looked up by each
#: call, by the hot ones in their own statement, so revocation holds at once. Other scopes and another rate
#: of a key hold after so many seconds.
_TRUST_SECONDS = 5.0

_LIVES = """
SELECT 1 FROM accounts_apikey
 WHERE id = %s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
"""

#: `last_used_at` is written once in so many seconds: it is for people, and a write a call would be too dear.
_LAST_USED_SECONDS = 60.0

_CACHE_SIZE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The key behind a call."""

    key_id: UUID
    project_id: UUID
    scopes: frozenset[str]
    rate_limit: int | None
    redaction: Redaction
    prices: tuple[CustomPrice, ...] = ()
    user_id: int | None = None  #: who made the key
    upkeep: bool = False  #: the project has its working memories kept current


_trusted: dict[str, tuple[float, Principal]] = {}


def authenticate(request: HttpRequest, *, trust_cache: bool = False) -> Principal:
    """The caller of `request`. With `trust_cache` the caller checks in SQL that the key lives.

    Raises `NotAuthenticated`.
    """
    scheme, _, text = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() != "bearer" or not text:
        raise NotAuthenticated(
            "not_authenticated",
            "send your API key as `Authorization: Bearer ctx_…`",
            headers={"WWW-Authenticate": "Bearer"},
        )
    now = time.monotonic()
    known = _trusted.get(text)
    if known and known[0] > now and (trust_cache or _lives(known[1].key_id)):
        return known[1]
    key = api_key_find(text.strip())
    if key is None:
        _trusted.pop(text, None)
        raise NotAuthenticated(
            "not_authenticated",
            "the API key is unknown, expired or revoked",
            headers={"WWW-Authenticate": "Bearer"},
        )
    principal = Principal(
        key_id=key.pk,
        project_id=key.project_id,
        scopes=frozenset(key.scopes),
        rate_limit=key.rate_limit,
        redaction=redaction_of(key.project),
        prices=custom_prices(key.project),
        user_id=key.created_by_id,
        upkeep=key.project.memory_upkeep,
    )
    if len(_trusted) >= _CACHE_SIZE:
        _trusted.clear()
    _trusted[text] = (now + _TRUST_SECONDS, principal)
    _note_use(key)
    return principal


def _lives(key_id: UUID) -> bool:
    with connection.wrap_database_errors:
        return execute(raw_connection(), _LIVES, [key_id]).fetchone() is not None


def _note_use(key: ApiKey) -> None:
    age = None if key.last_used_at is None else time.time() - key.last_used_at.timestamp()
    if age is None or age > _LAST_USED_SECONDS:
        api_key_use_record(key=key)
