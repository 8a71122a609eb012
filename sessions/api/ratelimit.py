"""Requests a minute of one key.

The count of a minute lies in the broker's Valkey, where all processes see it. A process takes its share in
small leases, so that most requests ask nobody. With another broker each process counts for itself. Where
Valkey does not answer, requests pass: a limit that cannot be counted must not stop agents.
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
class _Lease:
    window: int
    left: int


_leases: dict[Any, _Lease] = {}


def check(principal: Principal) -> None:
    """Raises `RateLimited` where the key has used up its minute."""
    limit = principal.rate_limit if principal.rate_limit is not None else settings.CONTEXTAPP_RATE_LIMIT
    if not limit:
        return
    now = time.time()
    window = int(now // _WINDOW_SECONDS)
    lease = _leases.get(principal.key_id)
    if lease is None or lease.window != window or lease.left <= 0:
        lease = _leases[principal.key_id] = _Lease(window, _take(principal, window, limit))
    if lease.left <= 0:
        wait = int((window + 1) * _WINDOW_SECONDS - now) + 1
        raise RateLimited(
            "rate_limited",
            f"the key may send {limit:,} requests a minute",
            headers={"Retry-After": str(wait)},
        )
    lease.left -= 1


def _take(principal: Principal, window: int, limit: int) -> int:
    """A lease of the minute: a twentieth of the limit, as far as it goes."""
    if not settings.CONTEXTAPP_VALKEY_URL:
        return limit
    wanted = max(1, limit // 20)
    name = f"contextapp:rate:{principal.key_id}:{window}"
    try:
        with _valkey().pipeline() as pipe:
            pipe.incrby(name, wanted)
            pipe.expire(name, 2 * _WINDOW_SECONDS)
            used = int(pipe.execute()[0])
    except Exception:  # whatever the client raises: see the module's docstring
        log.warning("rate limit not counted: the broker does not answer", exc_info=True)
        return wanted
    return max(0, min(wanted, limit - (used - wanted)))


@cache
def _valkey() -> Any:
    # Celery and redis-py name a socket's address differently.
    url = settings.CONTEXTAPP_VALKEY_URL.replace("redis+socket://", "unix://", 1)
    return Redis.from_url(url, socket_timeout=0.5)
