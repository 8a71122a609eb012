"""Authentication by API key."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

from django.http import HttpRequest

from accounts.keys import MARK, key_split
from accounts.models import ApiKey
from accounts.selectors import KEY_IS_VALID, api_key_find
from accounts.services.api_keys import api_key_use_record
from pricing.custom import CustomPrice
from redaction import Redaction
from sessions.api.errors import NotAuthenticated
from sessions.selectors.custom_prices import custom_prices
from sessions.selectors.redaction import redaction_of
from sessions.store.postgres import execute

#: Seconds for which a process caches a key's scopes, rate limit and project settings. Whether the key is
#: still valid is checked on each request, so a revocation takes effect immediately.
_CACHE_SECONDS = 5.0

_VALID: LiteralString = f"SELECT 1 FROM accounts_apikey k WHERE k.id = %s AND {KEY_IS_VALID}"  # noqa: S608

#: Minimum seconds between two updates of `last_used_at`. An update per request would be too expensive.
_LAST_USED_SECONDS = 60.0

_CACHE_SIZE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The API key of a request, with the settings of its project."""

    key_id: UUID
    project_id: UUID
    scopes: frozenset[str]
    rate_limit: int | None
    redaction: Redaction
    prices: tuple[CustomPrice, ...] = ()
    user_id: int | None = None  #: the user who created the key
    upkeep: bool = False  #: whether the project updates working memory automatically


_principals: dict[str, tuple[float, Principal]] = {}


def authenticate(request: HttpRequest, *, trust_cache: bool = False) -> Principal:
    """Return the principal of `request`.

    With `trust_cache`, a cached key is not checked again: the caller does so in its own SQL statement.
    Raises `NotAuthenticated`.
    """
    authorization = request.META.get("HTTP_AUTHORIZATION", "")
    scheme, _, text = authorization.partition(" ")
    if scheme.lower() != "bearer" or not text:
        problem = (
            "The `Authorization` header is not a bearer token" if authorization else "No API key provided"
        )
        raise NotAuthenticated(
            "not_authenticated",
            f"{problem}. Send the key as `Authorization: Bearer ctx_…`.",
            headers={"WWW-Authenticate": "Bearer"},
        )
    cached = _cached(text)
    if cached is not None and (trust_cache or _is_valid(cached.key_id)):
        return cached
    key = api_key_find(text.strip())
    if key is None:
        _principals.pop(text, None)
        raise NotAuthenticated(
            "not_authenticated",
            _reason(text.strip()),
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
    if len(_principals) >= _CACHE_SIZE:
        _principals.clear()
    _principals[text] = (time.monotonic() + _CACHE_SECONDS, principal)
    _record_use(key)
    return principal


def _reason(text: str) -> str:
    """Return why no key was found for `text`."""
    if key_split(text):
        return "The API key is unknown, expired or revoked."
    if text.startswith(f"{MARK}_"):
        return "The API key is incomplete."
    return f"This is not a contextapp API key, which begins with `{MARK}_`."


def principal_cached(authorization: str) -> Principal | None:
    """Return the principal of the header `Authorization`, if it is cached. The key may have been revoked."""
    return _cached(authorization[len("Bearer ") :]) if authorization.startswith("Bearer ") else None


def _cached(text: str) -> Principal | None:
    cached_until, principal = _principals.get(text, (0.0, None))
    return principal if cached_until > time.monotonic() else None


def _is_valid(key_id: UUID) -> bool:
    return execute(_VALID, [key_id]).fetchone() is not None


def _record_use(key: ApiKey) -> None:
    age = None if key.last_used_at is None else time.time() - key.last_used_at.timestamp()
    if age is None or age > _LAST_USED_SECONDS:
        api_key_use_record(key=key)
