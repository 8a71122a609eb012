"""Health of a session's context: a grade with its reasons. Pure functions.

A session starts with 100 points. Each problem subtracts points, up to a limit per kind of problem, so that no
single kind dominates. `RULES` defines the points; the session page shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

#: Prompts above this share of their limit are under pressure, or above the hard trigger, if contextapp
#: compacts the session.
PRESSURE = 0.75
#: Fewer calls that report their usage are too few to judge.
MIN_CALLS = 3
#: A compaction within this many turns of the previous one counts as repeated.
REPEATED_TURNS = 8
#: Fewer tool outputs are too few to judge.
MIN_OUTPUTS = 5
#: Errors in a smaller part of the newest tool outputs, in percent, are part of normal work.
FAILING = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """The counts from which a session's health is calculated.

    `calls` are the turns that reported their usage. `missed` is the part of their cost, in percent, that
    cache misses without a compaction before them caused. `errors` are the errors among the newest `outputs`
    tool outputs. `pressed` and `burst` are the numbers of turns whose prompt was under pressure and exceeded
    the limit. `client` counts the client's own compactions. `churning` is set if the working memory discards
    what it gains, `runaway` if the newest prompts reach the limit.
    """

    turns: int
    calls: int = 0
    missed: int = 0
    client: int = 0
    pressed: int = 0
    burst: int = 0
    compactions: int = 0
    repeated: int = 0
    mid_task: int = 0
    spikes: int = 0
    lost: int = 0
    outputs: int = 0
    errors: int = 0
    failures: int = 0
    churning: bool = False
    runaway: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A reason why points were subtracted."""

    code: str
    points: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The result: `score` is 0 to 100, `grade` A to F. The reason with the most points comes first.

    With fewer than `MIN_CALLS` and no compaction, `score` is None and `grade` is empty.
    """

    score: int | None
    grade: str
    reasons: Sequence[Reason]

    def reasons_json(self) -> list[dict[str, Any]]:
        return [asdict(reason) for reason in self.reasons]


GRADES = (("A", 90), ("B", 75), ("C", 60), ("D", 45), ("F", 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Subtracts `points` for each occurrence that `count` returns, at most `maximum`.

    `text` is a template with the number `n` and the plural ending `s`.
    """

    points: float
    maximum: int
    count: Callable[[Signs], int]
    text: str


def _failing(signs: Signs) -> int:
    """Return the part of the newest tool outputs that are errors, in percent; 0 if it is unremarkable."""
    if signs.outputs < MIN_OUTPUTS:
        return 0
    share = round(100 * signs.errors / signs.outputs)
    return share if share >= FAILING else 0


#: Pressure is measured as a share of the turns: ten of twenty turns are many, ten of a thousand are few.
RULES: Mapping[str, Rule] = {
    "burst": Rule(
        points=5, maximum=25, count=lambda s: s.burst, text="prompts exceeded their limit on {n} turn{s}"
    ),
    "cache": Rule(
        points=1, maximum=40, count=lambda s: s.missed, text="cache misses caused {n}% of the cost"
    ),
    "client": Rule(
        points=8,
        maximum=24,
        count=lambda s: s.client,
        text="the client compacted its own context {n} time{s}",
    ),
    "errors": Rule(
        points=0.4,
        maximum=40,
        count=_failing,
        text="{n}% of the newest tool outputs report an error",
    ),
    "pressure": Rule(
        points=0.4,
        maximum=20,
        count=lambda s: round(100 * s.pressed / s.turns) if s.turns else 0,
        text="prompts were close to their limit on {n}% of the turns",
    ),
    "repeated": Rule(
        points=8,
        maximum=24,
        count=lambda s: s.repeated,
        text=f"{{n}} compaction{{s}} ran within {REPEATED_TURNS} turns of the previous one",
    ),
    "mid_task": Rule(
        points=4,
        maximum=16,
        count=lambda s: s.mid_task,
        text="{n} compaction{s} ran between a call and its result",
    ),
    "spikes": Rule(
        points=6, maximum=24, count=lambda s: s.spikes, text="unusually large tool outputs on {n} turn{s}"
    ),
    "lost": Rule(
        points=6,
        maximum=30,
        count=lambda s: s.lost,
        text="{n} edit{s} removed content that was referenced later",
    ),
    "failures": Rule(
        points=10,
        maximum=20,
        count=lambda s: s.failures,
        text="{n} consecutive background compaction{s} failed",
    ),
    "runaway": Rule(
        points=15,
        maximum=15,
        count=lambda s: int(s.runaway),
        text="the newest prompts reach their limit, and compaction does not reduce them",
    ),
    "churn": Rule(
        points=10,
        maximum=10,
        count=lambda s: int(s.churning),
        text="working memory discards what it gains",
    ),
}


def health_of(signs: Signs) -> Health:
    if signs.calls < MIN_CALLS and not signs.compactions:
        return Health(score=None, grade="", reasons=())
    counted = ((code, rule, rule.count(signs)) for code, rule in RULES.items())
    reasons = [
        Reason(
            code=code,
            points=min(rule.maximum, max(1, round(rule.points * n))),
            text=rule.text.format(n=n, s="" if n == 1 else "s"),
        )
        for code, rule, n in counted
        if n
    ]
    score = max(0, 100 - sum(reason.points for reason in reasons))
    grade = next(grade for grade, minimum in GRADES if score >= minimum)
    return Health(score=score, grade=grade, reasons=sorted(reasons, key=lambda reason: -reason.points))
