"""What workers do. A task only names a service: everything that it needs stands in the database, so one that
is lost or delivered twice does no harm."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from sessions.services import dispatch
from sessions.services import references as referenced
from sessions.services.compactions import background, sweep, triggers, upgrades
from sessions.services.memory import at_rest, reading, upkeep
from sessions.services.sessions import profiles, retention
from sessions.services.spending import budgets, rollups
from sessions.services.webhooks import webhooks


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
