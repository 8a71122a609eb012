"""The circuit breaker of background compactions.

Each session counts consecutive failures: failed summaries, and compactions that failed in all attempts. When
the policy's `max_failures` is reached, the breaker opens, and no background compaction starts until the
cool-down is over. Then one compaction may run; if it fails too, the next cool-down begins. A successful
summary resets the count. Compactions that need no model do not change it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from compaction.policy import Policy
from sessions.models import AgentSession


def breaker_open_until(session: AgentSession, policy: Policy) -> datetime | None:
    """Return the end of the cool-down, or None if the breaker is closed."""
    if session.failures < policy.max_failures or session.failed_at is None:
        return None
    now, cooldown = timezone.now(), timedelta(seconds=settings.CONTEXTAPP_COOLDOWN_SECONDS)
    until = session.failed_at + cooldown
    # A failure in the future was stored before the clock was set back.
    return until if now < until <= now + 2 * cooldown else None


def breaker_count_failure(session: AgentSession) -> None:
    """Count a failure. The caller has locked the session."""
    session.failures += 1
    session.failed_at = timezone.now()
    session.save(update_fields=["failures", "failed_at"])


def breaker_reset(session: AgentSession) -> None:
    """Reset the count after a success. The caller has locked the session."""
    session.failures = 0
    session.save(update_fields=["failures"])
