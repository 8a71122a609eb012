"""Session profiles: sparkline and health, refreshed by the scheduler after a session changes.

A refresh also names sessions without a title after their first request.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from math import inf
from operator import attrgetter

from django.db import IntegrityError
from django.db.models import F, Q
from django.utils import timezone

from compaction.memory.diffs import Churn, churn
from compaction.sizes.meter import Verdict
from sessions.charts.cache import Cause, cost_share, misses
from sessions.charts.prompt_sizes import PromptSize
from sessions.models import AgentSession, SessionProfile
from sessions.selectors.charts.series import chart_points, prompt_slope
from sessions.selectors.health.facts import HealthFacts, health_facts
from sessions.selectors.health.grades import PRESSURE, REPEATED_TURNS, Health, Signs, health_of
from sessions.selectors.memory.revisions import memory_span
from sessions.selectors.recent_activity import RECENT, sessions_active_since
from sessions.selectors.token_budgets import limit_of, policy_of, session_calibration
from sessions.services.sessions.labels import title_set

#: Points of a sparkline.
SPARKLINE = 48
#: Profiles refreshed per run of the task; the next run continues.
BATCH = 200
#: Newest memory revisions that are checked for churn.
_REVISIONS = 30

#: Causes of cache misses that a compaction accepts: health counts the compaction itself.
_BY_COMPACTION = (Cause.CLIENT, Cause.COMPACTION)

#: Time after its last turn from which a session counts as inactive.
_REST = timedelta(minutes=2)


def profiles_refresh(*, limit: int = BATCH, everywhere: bool = False) -> int:
    """Refresh missing and outdated profiles, most recently active sessions first. Return how many.

    Checks the sessions that were active within the last hour, or all sessions with `everywhere`, for changes
    that do not update the time of activity.
    """
    outdated = (
        Q(profile=None)
        | ~Q(profile__turn_count=F("turn_count"))
        | ~Q(profile__edits_revision=F("edits_revision"))
        # Once more when the session is inactive: findings about its last turns, such as a reference to
        # removed content, change no counter.
        | Q(profile__updated_at__lt=F("last_active_at") + _REST, last_active_at__lt=timezone.now() - _REST)
    )
    found = AgentSession.objects.filter(outdated).select_related("project")
    if not everywhere:
        found = found.filter(pk__in=sessions_active_since(timezone.now() - RECENT))
    try:
        return len(_profiles_write(list(found.order_by("-last_active_at")[:limit])))
    except IntegrityError:
        return 0  # one of the sessions has just been deleted; the next pass writes the others


def profile_write(*, session: AgentSession) -> SessionProfile:
    """Recompute the profile of one session."""
    [profile] = _profiles_write([session])
    return profile


def _profiles_write(sessions: Sequence[AgentSession]) -> list[SessionProfile]:
    facts = health_facts(session.pk for session in sessions) if sessions else {}
    # In one order, so that concurrent passes cannot block each other.
    ordered = sorted(sessions, key=attrgetter("pk"))
    profiles = [_profile(session, facts[session.pk]) for session in ordered]
    columns = [field.name for field in SessionProfile._meta.concrete_fields if not field.primary_key]
    written = SessionProfile.objects.bulk_create(
        profiles, update_conflicts=True, unique_fields=["session"], update_fields=columns
    )
    for session in ordered:
        if session.message_count and not session.title and not session.keeps_labels:
            title_set(session=session)
    return written


def _profile(session: AgentSession, facts: HealthFacts) -> SessionProfile:
    """Compute the profile of a session from small columns of all its turns."""
    points = chart_points(session=session)
    calibration = session_calibration(session)
    sizes = [point.provider_tokens(calibration) for point in points]
    health: Health = health_of(_signs(session, points, sizes, facts))
    return SessionProfile(
        session=session,
        turn_count=session.turn_count,
        edits_revision=session.edits_revision,
        lost_references=facts.lost,
        sparkline=sparkline(sizes),
        grade=health.grade,
        score=health.score,
        reasons=health.reasons_json(),
        updated_at=timezone.now(),
    )


def sparkline(sizes: Sequence[int], points: int = SPARKLINE) -> list[int]:
    """Return the maximum of each of at most `points` sections of equal length."""
    if len(sizes) <= points:
        return list(sizes)
    edges = [len(sizes) * n // points for n in range(points + 1)]
    return [max(sizes[start:end]) for start, end in pairwise(edges)]


def _signs(
    session: AgentSession, points: Sequence[PromptSize], sizes: Sequence[int], facts: HealthFacts
) -> Signs:
    known = {model: limit_of(session, model=model) for model in {point.model for point in points}}
    limits = [limit.tokens if (limit := known[point.model]) else inf for point in points]
    # Between two compactions, a prompt is meant to grow up to the hard trigger.
    hard = policy_of(session.policy, model=session.model).hard if facts.numbers else 0
    by_client = [point.turn for point in points if point.client_compaction is not None]
    own = {turn + 1: number for turn, number in zip(facts.turns, facts.numbers, strict=True)}
    places = sorted({*by_client, *own})
    slope = prompt_slope(session=session, points=points, compactions=own)
    avoidable = [miss for miss in misses(points, own) if miss.cause not in _BY_COMPACTION]
    return Signs(
        turns=len(points),
        calls=sum(point.reported is not None for point in points),
        missed=round(100 * cost_share(points, avoidable)),
        client=len(by_client),
        pressed=sum(max(PRESSURE, hard) * limit < size for limit, size in zip(limits, sizes, strict=True)),
        burst=sum(limit < size for limit, size in zip(limits, sizes, strict=True)),
        compactions=len(places),
        repeated=sum(later - earlier <= REPEATED_TURNS for earlier, later in pairwise(places)),
        mid_task=facts.mid_task,
        spikes=sum(point.output_spike is not None for point in points),
        lost=facts.lost,
        outputs=facts.outputs,
        errors=facts.errors,
        failures=session.failures,
        churning=_is_churning(session, facts.revision),
        runaway=slope is not None and slope.verdict is Verdict.WALL,
    )


def _is_churning(session: AgentSession, newest: int | None) -> bool:
    if newest is None:
        return False
    first = max(newest - _REVISIONS, 0)
    memories = memory_span(session_id=session.pk, first=first, last=newest)
    return churn(memories)[0] is Churn.CHURNING
