"""Prometheus metrics of what services do: compactions by trigger, state and step, and tool output spikes.

Each process that imports this module counts what it does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver
from prometheus_client import Counter

from sessions.models import Compaction
from sessions.services.commits import after_commit
from sessions.services.push.compacted import compaction_stored
from sessions.services.push.spikes import spike_stored
from sessions.store.metric_files import metric_registry

_FINISHED = frozenset(Compaction.State.values) - set(Compaction.OPEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventMetrics:
    compactions: Counter
    steps: Counter
    spikes: Counter


@cache
def event_metrics() -> EventMetrics:
    """Return this process's counters. The first call creates the folder."""
    registry = metric_registry()
    return EventMetrics(
        compactions=Counter(
            "contextapp_compactions",
            "Finished and reverted compactions",
            ["trigger", "state"],
            registry=registry,
        ),
        steps=Counter(
            "contextapp_compaction_steps",
            "Applied compactions that needed the step",
            ["step"],
            registry=registry,
        ),
        spikes=Counter(
            "contextapp_tool_output_spikes", "Pushed turns with a tool output spike", registry=registry
        ),
    )


@receiver(spike_stored)
def _spike_stored(**_: Any) -> None:
    event_metrics().spikes.inc()


@receiver(post_save, sender=Compaction)
def _compaction_saved(instance: Compaction, update_fields: Collection[str] | None = None, **_: Any) -> None:
    if instance.state not in _FINISHED or (update_fields is not None and "state" not in update_fields):
        return
    after_commit(_compaction_count, instance.trigger, instance.state, instance.record)


@receiver(compaction_stored)
def _compaction_stored(instance: Compaction, **_: Any) -> None:
    _compaction_count(instance.trigger, instance.state, instance.record)


def _compaction_count(trigger: str, state: str, record: Mapping[str, Any]) -> None:
    event_metrics().compactions.labels(trigger, state).inc()
    if state == Compaction.State.DONE:
        for step in record.get("strategies", ()):
            event_metrics().steps.labels(step).inc()
