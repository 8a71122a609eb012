"""The gateway's metrics. `/metrics` sums the counters of all processes on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from prometheus_client import Counter, Gauge, Histogram

from sessions.store.metric_files import metric_files_reserve, metric_registry

_SECONDS = (0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    calls: Counter
    lost: Counter
    spooled: Counter
    open: Gauge
    overhead: Histogram


@cache
def metrics() -> Metrics:
    """Return the counters of this process."""
    registry = metric_registry()
    return Metrics(
        calls=Counter(
            "contextapp_gateway_calls",
            "Calls forwarded",
            ["provider", "endpoint", "status"],
            registry=registry,
        ),
        lost=Counter("contextapp_gateway_calls_lost", "Calls that could not be recorded", registry=registry),
        spooled=Counter(
            "contextapp_gateway_calls_spooled", "Calls that waited on disk to be recorded", registry=registry
        ),
        open=Gauge(
            "contextapp_gateway_calls_open",
            "Calls in progress",
            registry=registry,
            multiprocess_mode="livesum",
        ),
        overhead=Histogram(
            "contextapp_gateway_overhead_seconds",
            "Time between the request and its forwarding",
            buckets=_SECONDS,
            registry=registry,
        ),
    )


def metrics_reserve() -> None:
    """Create this process's counters, and reserve their space on disk."""
    metrics()
    metric_files_reserve()
