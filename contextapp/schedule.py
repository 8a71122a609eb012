"""The periodic tasks of Celery beat."""

from __future__ import annotations

from typing import Any

from contextapp import env

#: Seconds after which a task that no worker has started is dropped, because the next one follows soon.
EXPIRES = 60


def beat_schedule() -> dict[str, dict[str, Any]]:
    sweep = env.seconds("CONTEXTAPP_SWEEP_SECONDS", 20)
    rollup = env.seconds("CONTEXTAPP_ROLLUP_SECONDS", 60)
    idle = env.seconds("CONTEXTAPP_IDLE_CHECK_SECONDS", 30)
    periods = {
        "budgets": ("sessions.tasks.cost_budgets_check", rollup),
        "retention": ("sessions.tasks.retention_run", 3_600.0),
        "rollups": ("sessions.tasks.rollups_fill", rollup),
        "derive": ("sessions.tasks.derive_everywhere", 300.0),
        "sweep": ("sessions.tasks.compactions_sweep", sweep),
        "webhooks": ("sessions.tasks.webhooks_sweep", sweep),
        "idle": ("sessions.tasks.compactions_idle", idle),
        "upgrade": ("sessions.tasks.compactions_upgrade", idle),
        "references": (
            "sessions.tasks.references_check",
            env.seconds("CONTEXTAPP_REFERENCE_SECONDS", 10),
        ),
        "imports": ("sessions.tasks.imports_sweep", sweep),
        "replays": ("replay.tasks.replays_sweep", sweep),
        "profiles": ("sessions.tasks.profiles_refresh", env.seconds("CONTEXTAPP_PROFILE_SECONDS", 15)),
        "search": ("sessions.tasks.search_index_run", env.seconds("CONTEXTAPP_SEARCH_SECONDS", 3)),
        "tools": ("sessions.tasks.tools_count", 10.0),
        "memory": ("sessions.tasks.memory_sweep", sweep),
        "proposals": ("sessions.tasks.memory_propose", idle),
    }
    return {
        name: {"task": task, "schedule": seconds, "options": {"expires": EXPIRES}}
        for name, (task, seconds) in periods.items()
    }
