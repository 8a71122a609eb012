"""The most expensive calls of a session, and what explains their cost."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from sessions.charts.cache import Miss, misses
from sessions.charts.prompt_sizes import PromptSize
from sessions.models import AgentSession
from sessions.models.session import PUSHED
from sessions.selectors.charts.series import chart_points, compactions_by_turn
from sessions.selectors.charts.stretches import NOTHING, Largest

#: Number of calls shown.
SHOWN = 5
#: Turns before a call among which is the previous call: turns without an answer lie between.
_LOOK_BACK = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpensiveCall:
    """A model call with its cost and tokens. `miss` explains why its prompt was not in the cache."""

    call: PromptSize
    is_first: bool
    miss: Miss | None

    @property
    def is_largest_output(self) -> bool:
        """Whether most of the billed tokens that the cache could not serve are output."""
        return self.call.output > self.call.uncached + self.call.cache_write


def estimated_outputs(*, session: AgentSession, known: Largest = NOTHING) -> int:
    """Return the number of calls whose output tokens are estimated, because the log reports too few."""
    if session.origin == PUSHED:
        return 0
    newest = session.turns.filter(index__gte=known.end, output_reported__isnull=False)
    return known.estimated_outputs + newest.count()


def expensive_calls(*, session: AgentSession, known: Largest = NOTHING) -> list[ExpensiveCall]:
    """Return calls with a known price, most expensive first. At most four queries over small columns."""
    if not session.cost_microusd:
        return []
    found = Q(index__in=known.costs) | Q(index__gte=known.end)
    priced = session.turns.filter(found, billed=True, cost_microusd__gt=0).order_by("-cost_microusd", "index")
    turns = list(priced.values_list("index", flat=True)[:SHOWN])
    near = [index for turn in turns for index in range(turn - _LOOK_BACK, turn + 1)]
    points = chart_points(session=session, turns=near)
    compactions = compactions_by_turn(session=session)
    missed = {each.turn: each for each in misses(points, compactions)}
    calls = {point.turn: point for point in points}
    # Turns that were pushed since the session was read have no point.
    shown = (n for n in turns if n in calls)
    return [ExpensiveCall(call=calls[n], is_first=n == 0, miss=missed.get(n)) for n in shown]
