"""Rate limits: requests per minute for each API key.

The counter of each minute is stored in the broker's Valkey, where all processes share it. Each process
reserves small shares of the limit, so that most requests need no round trip. With a broker other than
Valkey, each process counts separately. Requests pass while Valkey is unavailable: agents must not fail
because a limit cannot be counted.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from redis import Redis

from sessions.api.auth import Principal
from sessions.api.errors import RateLimited

log = logging.getLogger(__name__)

_WINDOW_SECONDS = 60


@dataclass(slots=True)
class _Reservation:
    window: int
    left: int


_reservations: dict[Any, _Reservation] = {}


def check(principal: Principal) -> None:
    """Raise `RateLimited` if the key has reached its limit for this minute."""
    limit = principal.rate_limit if principal.rate_limit is not None else settings.CONTEXTAPP_RATE_LIMIT
    if not limit:
        return
    now = time.time()
    window = int(now // _WINDOW_SECONDS)
    reservation = _reservations.get(principal.key_id)
    if (
        reservation is None
        or reservation.window != window
        or (reservation.left <= 0 and settings.CONTEXTAPP_VALKEY_URL)
    ):
        left = _reserve(principal, window, limit)
        reservation = _reservations[principal.key_id] = _Reservation(window, left)
    if reservation.left <= 0:
        wait = int((window + 1) * _WINDOW_SECONDS - now) + 1
        raise RateLimited(
            "rate_limited",
            f"The API key exceeded its limit of {limit:,} requests per minute.",
            headers={"Retry-After": str(wait)},
        )
    reservation.left -= 1


def take_reserved(principal: Principal) -> bool:
    """Count a request without a round trip. Return False, and count nothing, if `check` has to count it."""
    if principal.rate_limit is None and not settings.CONTEXTAPP_RATE_LIMIT:
        return True
    reservation = _reservations.get(principal.key_id)
    window = int(time.time() // _WINDOW_SECONDS)
    if reservation is None or reservation.window != window or reservation.left <= 0:
        return False
    reservation.left -= 1
    return True


def give_back(principal: Principal) -> None:
    """Undo `take_reserved`."""
    if (reservation := _reservations.get(principal.key_id)) is not None:
        reservation.left += 1


def _reserve(principal: Principal, window: int, limit: int) -> int:
    """Reserve up to a twentieth of the limit in this window; return the number of requests reserved."""
    if not settings.CONTEXTAPP_VALKEY_URL:
        return limit
    share = max(1, limit // 20)
    name = f"contextapp:rate:{principal.key_id}:{window}"
    try:
        with _valkey().pipeline() as pipe:
            pipe.incrby(name, share)
            pipe.expire(name, 2 * _WINDOW_SECONDS)
            used = int(pipe.execute()[0])
    except Exception:  # requests must pass, whatever the client raises
        log.warning("rate limit not counted: the broker is unavailable", exc_info=True)
        return share
    return max(0, min(share, limit - (used - share)))


@cache
def _valkey() -> Any:
    # Celery and redis-py use different URL schemes for sockets.
    url = settings.CONTEXTAPP_VALKEY_URL.replace("redis+socket://", "unix://", 1)
    return Redis.from_url(url, socket_timeout=0.5)
