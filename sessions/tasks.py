"""Celery tasks. Each calls a service that reads everything from the database, so lost or duplicate tasks are
harmless.
"""

from __future__ import annotations

from uuid import UUID

from celery import shared_task
from django.core.management import call_command

from sessions.services import dispatch
from sessions.services.compactions import background, recap_upgrades, reference_scans, triggers
from sessions.services.imports import execution, jobs
from sessions.services.memory import auto_proposals, auto_updates, extraction
from sessions.services.reconcile import points
from sessions.services.samples import jobs as samples
from sessions.services.search import indexing
from sessions.services.sessions import profiles, retention
from sessions.services.spending import cost_budgets, rollups
from sessions.services.tools import counting
from sessions.services.webhooks import deliveries


@shared_task(name=dispatch.COMPACTION_RUN)  # type: ignore[untyped-decorator]
def compaction_run(compaction_id: str) -> None:
    background.compaction_run(compaction_id=UUID(compaction_id))


@shared_task  # type: ignore[untyped-decorator]
def compactions_sweep() -> None:
    background.compactions_sweep()


@shared_task  # type: ignore[untyped-decorator]
def compactions_idle() -> None:
    triggers.idle_sessions_compact()


@shared_task  # type: ignore[untyped-decorator]
def compactions_upgrade() -> None:
    recap_upgrades.recap_upgrades_queue()


@shared_task(name=dispatch.WEBHOOK_DELIVER)  # type: ignore[untyped-decorator]
def webhook_deliver(delivery_id: str) -> None:
    deliveries.delivery_send_in_background(delivery_id=UUID(delivery_id))


@shared_task  # type: ignore[untyped-decorator]
def webhooks_sweep() -> None:
    deliveries.deliveries_sweep()


@shared_task  # type: ignore[untyped-decorator]
def cost_budgets_check() -> None:
    cost_budgets.cost_budgets_check()


@shared_task  # type: ignore[untyped-decorator]
def retention_run() -> None:
    deleted = retention.retention_run()
    jobs.import_jobs_expire()
    deliveries.deliveries_expire()
    call_command("clearsessions")  # expired logins, which Django only ignores
    points.points_expire()
    if deleted:
        retention_run.delay()  # the next batch, after more urgent tasks


@shared_task(name=dispatch.IMPORT_STEP)  # type: ignore[untyped-decorator]
def import_step(job_id: str) -> None:
    execution.import_step(job_id=UUID(job_id))


@shared_task  # type: ignore[untyped-decorator]
def imports_sweep() -> None:
    jobs.import_jobs_sweep()
    samples.samples_sweep()


@shared_task(name=dispatch.SAMPLE_LOAD)  # type: ignore[untyped-decorator]
def sample_load(project_id: str) -> None:
    samples.sample_run(project_id=UUID(project_id))


@shared_task  # type: ignore[untyped-decorator]
def rollups_fill() -> None:
    rollups.rollups_fill()


@shared_task  # type: ignore[untyped-decorator]
def derive_everywhere() -> None:
    rollups.rollups_fill(everywhere=True)
    profiles.profiles_refresh(everywhere=True)
    indexing.search_index_run(everywhere=True)
    counting.tools_count(everywhere=True)


@shared_task  # type: ignore[untyped-decorator]
def references_check() -> None:
    reference_scans.reference_scans_run()


@shared_task(name=dispatch.MEMORY_UPDATE)  # type: ignore[untyped-decorator]
def memory_upkeep(session_id: str) -> None:
    auto_updates.memory_update(session_id=UUID(session_id))
    extraction.extraction_run(session_id=UUID(session_id))


@shared_task(name=dispatch.MEMORY_OBSERVE)  # type: ignore[untyped-decorator]
def memory_observe(session_id: str) -> None:
    auto_updates.memory_update(session_id=UUID(session_id), forced=True)
    extraction.extraction_run(session_id=UUID(session_id))


@shared_task  # type: ignore[untyped-decorator]
def memory_sweep() -> None:
    auto_updates.memory_updates_sweep()
    extraction.extractions_sweep()


@shared_task  # type: ignore[untyped-decorator]
def memory_propose() -> None:
    auto_proposals.proposal_scans_run()


@shared_task  # type: ignore[untyped-decorator]
def profiles_refresh() -> None:
    profiles.profiles_refresh()


@shared_task(name=dispatch.SEARCH_INDEX)  # type: ignore[untyped-decorator]
def search_index(session_id: str) -> None:
    indexing.session_index(session_id=UUID(session_id), seconds=indexing.SLICE_SECONDS)


@shared_task  # type: ignore[untyped-decorator]
def search_index_run() -> None:
    indexing.search_index_run()


@shared_task  # type: ignore[untyped-decorator]
def tools_count() -> None:
    counting.tools_count()


@shared_task(name=dispatch.TOOLS_COUNT)  # type: ignore[untyped-decorator]
def session_tools_count(session_id: str) -> None:
    counting.session_tools_count(session_id=UUID(session_id), seconds=counting.SLICE_SECONDS)
