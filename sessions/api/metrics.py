"""Prometheus metrics: requests by route and status, and those of the services.

Each web and worker process writes its counters to a file in a shared folder. The process that serves
`/metrics` sums them. Requests are labeled by route, never by URL, so labels contain no ids, names or secrets.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

from django.http import HttpRequest, HttpResponse
from prometheus_client import Counter, Histogram

from sessions.services.event_metrics import event_metrics
from sessions.store.metric_files import metric_files_reserve, metric_registry

#: In seconds. Pushes and fetches are at the low end, imports at the high end.
_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30)

#: Methods with a separate series. Clients can send any method name, so others are counted together.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

#: Bytes of a process's file of each kind, enough for every route.
_RESERVED = {"counter": 1 << 17, "histogram": 1 << 20}


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruments:
    requests: Counter
    seconds: Histogram


@cache
def instruments() -> Instruments:
    """Return this process's metrics. The first call creates the folder."""
    registry = metric_registry()
    return Instruments(
        requests=Counter(
            "contextapp_http_requests",
            "HTTP requests",
            ["method", "route", "status"],
            registry=registry,
        ),
        seconds=Histogram(
            "contextapp_http_request_seconds",
            "Duration of HTTP requests",
            ["method", "route"],
            buckets=_BUCKETS,
            registry=registry,
        ),
    )


def metrics_reserve(*kinds: str) -> None:
    """Reserve the space of this process's metrics of these kinds. Raises `OSError` if the disk is full."""
    metric_files_reserve(**{kind: _RESERVED[kind] for kind in kinds})


class RequestMetrics:
    """Middleware that counts and times every request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response
        instruments()
        event_metrics()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        response = self._get_response(request)
        match = request.resolver_match
        route = match.route if match is not None else ""
        method = request.method if request.method in _METHODS else "other"
        request_observe(method, route, response.status_code, time.perf_counter() - started)
        return response


def request_observe(method: str, route: str, status: int, seconds: float) -> None:
    """Count and time a request."""
    count, duration = _request_metrics(method, route, status)
    count.inc()
    duration.observe(seconds)


@lru_cache(maxsize=4096)
def _request_metrics(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    """Return the metrics with these labels, which take longer to look up than to update."""
    return instruments().requests.labels(method, route, status), instruments().seconds.labels(method, route)
