"""What workers do. A task only names a service: everything that it needs stands in the database, so one that
is lost or delivered twice does no harm."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from sessions import dispatch
from sessions.memory import at_rest, reading, upkeep
from sessions.referenced import check as referenced
from sessions.replay import work as replay_work
from sessions.services import (
    background,
    budgets,
    profiles,
    retention,
    rollups,
    sweep,
    triggers,
    upgrades,
    webhooks,
)


@shared_task(name=dispatch.RUN)  # type: ignore[untyped-decorator]
def compaction_run(compaction_id: str) -> None:
    background.compaction_run(compaction_id=UUID(compaction_id))


@shared_task  # type: ignore[untyped-decorator]
def compactions_sweep() -> None:
    sweep.sweep()


@shared_task  # type: ignore[untyped-decorator]
def compactions_idle() -> None:
    triggers.idle_fire()


@shared_task  # type: ignore[untyped-decorator]
def compactions_upgrade() -> None:
    upgrades.upgrades_fire()


@shared_task(name=dispatch.DELIVER)  # type: ignore[untyped-decorator]
def webhook_deliver(delivery_id: str) -> None:
    webhooks.delivery_send(delivery_id=UUID(delivery_id))


@shared_task  # type: ignore[untyped-decorator]
def webhooks_sweep() -> None:
    webhooks.deliveries_sweep()


@shared_task  # type: ignore[untyped-decorator]
def budgets_watch() -> None:
    budgets.budgets_watch()


@shared_task  # type: ignore[untyped-decorator]
def retention_run() -> None:
    retention.retention_run()


@shared_task  # type: ignore[untyped-decorator]
def rollups_fill() -> None:
    rollups.rollups_fill()


@shared_task  # type: ignore[untyped-decorator]
def derive_everywhere() -> None:
    rollups.rollups_fill(everywhere=True)
    profiles.profiles_refresh(everywhere=True)


@shared_task(name=dispatch.REPLAY)  # type: ignore[untyped-decorator]
def replay_step(run_id: str) -> None:
    replay_work.run_step(run_id=UUID(run_id))


@shared_task  # type: ignore[untyped-decorator]
def replays_sweep() -> None:
    replay_work.runs_sweep()


@shared_task  # type: ignore[untyped-decorator]
def references_check() -> None:
    referenced.watches_check()


@shared_task(name=dispatch.UPKEEP)  # type: ignore[untyped-decorator]
def memory_upkeep(session_id: str) -> None:
    upkeep.upkeep_run(session_id=UUID(session_id))
    reading.reading_run(session_id=UUID(session_id))


@shared_task(name=dispatch.OBSERVE)  # type: ignore[untyped-decorator]
def memory_observe(session_id: str) -> None:
    upkeep.upkeep_run(session_id=UUID(session_id), asked=True)
    reading.reading_run(session_id=UUID(session_id))


@shared_task  # type: ignore[untyped-decorator]
def memory_sweep() -> None:
    upkeep.upkeep_sweep()
    reading.readings_sweep()


@shared_task  # type: ignore[untyped-decorator]
def memory_propose() -> None:
    at_rest.proposals_make()


@shared_task  # type: ignore[untyped-decorator]
def profiles_refresh() -> None:
    profiles.profiles_refresh()
