"""Calibration: provider tokens = factor * estimate + overhead.

The factor is the number of provider tokens per estimated token. The overhead is the number of tokens that the
agent sends but does not push, for example its system prompt and tools. Claude Code sends about 40,000 tokens
that its log does not contain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

#: An estimated size and the size that the provider reported for the same prompt.
Report = tuple[int, int]

_FACTOR_MIN, _FACTOR_MAX = 0.5, 3.0
#: Minimum growth of the prompt between two reports to learn the factor from, in estimated tokens.
_GROWTH_MIN = 200
#: Weight of the initial factor, and maximum growth to remember, in estimated tokens of growth.
_INITIAL_GROWTH, _GROWTH_MAX = 1_000, 100_000
#: The factors of known providers are within this distance of each other.
_FACTOR_SPREAD = 0.3
#: From this many reports on, a report that contradicts the calibration needs a second one that confirms it.
_SETTLED = 3
#: A report within this share of the expected size, or this many tokens, does not contradict it.
_TOLERANCE, _TOLERANCE_TOKENS = 0.15, 1_000
#: A report below this share of the estimate does not belong to the session's prompt.
_SHARE_MIN = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The conversion from estimates to provider tokens, learned from the prompt sizes that an agent reports.

    The factor is the reported growth of the prompt divided by its estimated growth, over many reports, so
    that neither the overhead nor a single report distorts it. It starts from `initial`, which has the weight
    of 1,000 tokens of growth. The overhead is the difference between the newest report and factor * estimate.
    Between two reports, an error of the factor therefore affects only the growth since the last report.

    A report that contradicts the calibration may belong to another prompt: that of a sub-agent, or of a call
    that was not pushed completely. It is stored in `doubt`, and used only if the next report confirms it.
    """

    initial: float = 1.0
    overhead: int = 0
    reports: int = 0
    growth: Report = (0, 0)  #: estimated, reported
    last: Report | None = None
    doubt: Report | None = None

    @property
    def factor(self) -> float:
        """Provider tokens per estimated token."""
        estimated, reported = self.growth
        found = (self.initial * _INITIAL_GROWTH + reported) / (_INITIAL_GROWTH + estimated)
        return min(max(min(found, self._factor_limit), _FACTOR_MIN), _FACTOR_MAX)

    @property
    def _factor_limit(self) -> float:
        # The overhead is not negative, so the provider's size is an upper limit of factor * estimate.
        return self.last[1] / self.last[0] if self.last else _FACTOR_MAX

    def provider(self, estimated: int) -> int:
        """Return the provider's tokens for an estimate."""
        return round(self.factor * estimated + self.overhead) if estimated else 0

    def provider_at_most(self, estimated: int) -> int:
        """Return the maximum number of provider tokens for an estimate, in case the factor is too low.

        The last reported size is certain, so only the growth since then is in doubt.
        """
        beyond = max(0, estimated - self.last[0]) if self.last else 0
        return self.provider(estimated) + round(self._doubt_of_factor * beyond)

    def room(self, budget: int) -> int:
        """Return the estimated tokens that fit into a budget of provider tokens, at least 1."""
        room = (budget - self.overhead) / self.factor
        if self.last and room > self.last[0]:
            doubt = self._doubt_of_factor
            room = (budget - self.overhead + doubt * self.last[0]) / (self.factor + doubt)
        return max(1, int(room))

    @property
    def _doubt_of_factor(self) -> float:
        """How much higher the factor may be: it is certain once the prompt has grown enough."""
        spread = _FACTOR_SPREAD * _INITIAL_GROWTH / (_INITIAL_GROWTH + self.growth[0])
        return min(spread, max(0.0, self._factor_limit - self.factor))

    def updated(self, *, sizes: Sequence[int], reported: int) -> Calibration:
        """Return the calibration after one more report.

        `sizes` are the estimates of the prompts that the agent may have sent: the served prompt and the whole
        transcript. The report is attributed to the one that fits best. `reported` includes cached tokens.
        """
        estimated = min(sizes, key=lambda size: abs(self.provider(size) - reported))
        if estimated <= 0 or reported <= 0:
            return self
        report = (estimated, reported)
        if self._is_expected(report):
            return self._with(report, after=self.last)
        if self.doubt is not None and self._confirms(report, self.doubt):
            return self._with(report, after=self.doubt)
        return replace(self, doubt=report)

    def _is_expected(self, report: Report) -> bool:
        estimated, reported = report
        if self.reports < _SETTLED:
            return reported >= _SHARE_MIN * estimated
        return _is_close(reported, self.provider(estimated))

    def _confirms(self, report: Report, doubt: Report) -> bool:
        expected = doubt[1] + self.factor * (report[0] - doubt[0])
        return _is_close(report[1], expected)

    def _with(self, report: Report, *, after: Report | None) -> Calibration:
        found = replace(
            self,
            reports=self.reports + 1,
            growth=_growth(self.growth, after, report) if after else self.growth,
            last=report,
            doubt=None,
        )
        return replace(found, overhead=max(0, round(report[1] - found.factor * report[0])))

    def restarted(self, *, initial: float) -> Calibration:
        """Return the initial calibration for a model that counts differently, with the same overhead."""
        return Calibration(initial=initial, overhead=round(self.overhead / self.factor * initial))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that is stored with the session."""
        return {
            "initial": self.initial,
            "overhead": self.overhead,
            "reports": self.reports,
            "growth": self.growth,
            "last": self.last,
            "doubt": self.doubt,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Calibration:
        estimated, reported = data["growth"]
        last, doubt = data["last"], data["doubt"]
        return cls(
            initial=data["initial"],
            overhead=data["overhead"],
            reports=data["reports"],
            growth=(estimated, reported),
            last=(last[0], last[1]) if last else None,
            doubt=(doubt[0], doubt[1]) if doubt else None,
        )


def calibration_learned(similar: Sequence[Calibration], *, budget: int) -> Calibration:
    """Return the initial calibration of a session: the medians of similar sessions.

    The overhead is at most half of the budget until the session reports its own: too high an overhead would
    shorten the first prompts unnecessarily.
    """
    overhead = round(median(each.overhead for each in similar))
    return Calibration(
        initial=round(median(each.factor for each in similar), 4), overhead=min(overhead, budget // 2)
    )


def _growth(growth: Report, before: Report, after: Report) -> Report:
    """Add the growth between two reports, unless no factor could explain it."""
    estimated, reported = after[0] - before[0], after[1] - before[1]
    if estimated < 0:
        estimated, reported = -estimated, -reported
    if estimated < _GROWTH_MIN or not _FACTOR_MIN <= reported / estimated <= _FACTOR_MAX:
        return growth
    total = (growth[0] + estimated, growth[1] + reported)
    share = min(1.0, _GROWTH_MAX / total[0])
    return round(total[0] * share), round(total[1] * share)


def _is_close(reported: float, expected: float) -> bool:
    return abs(reported - expected) <= max(_TOLERANCE * expected, _TOLERANCE_TOKENS)
