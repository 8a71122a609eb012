"""Celery tasks of replays. Each only calls a service, so lost or duplicate tasks are harmless."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from replay.services import execution


@shared_task(name=execution.STEP)  # type: ignore[untyped-decorator]
def replay_step(run_id: str) -> None:
    execution.run_step(run_id=UUID(run_id))


@shared_task  # type: ignore[untyped-decorator]
def replays_sweep() -> None:
    execution.replays_sweep()
