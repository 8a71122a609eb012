"""The table of results: values of several rounds, with the ratio to the bare view and the target."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Row:
    """One measurement: a value per round, and that of the bare view in the same round.

    `better` is "lower" or "higher". `target` is the limit of the ratio, or of the value without a bare view.
    """

    name: str
    unit: str
    ours: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    target: float | None = None
    better: str = "lower"

    @property
    def ratios(self) -> list[float]:
        return [ours / bare for ours, bare in zip(self.ours, self.bare, strict=True)] if self.bare else []

    @property
    def judged(self) -> list[float]:
        """The values that the target applies to."""
        return self.ratios or self.ours

    @property
    def is_met(self) -> bool | None:
        if self.target is None:
            return None
        value = statistics.median(self.judged)
        return value <= self.target if self.better == "lower" else value >= self.target

    def to_json(self) -> dict[str, Any]:
        ratio = statistics.median(self.ratios) if self.ratios else None
        return {
            "name": self.name,
            "unit": self.unit,
            "ours": self.ours,
            "bare": self.bare,
            "ratio": round(ratio, 3) if ratio is not None else None,
            "spread": [round(min(self.judged), 3), round(max(self.judged), 3)],
            "target": self.target,
            "better": self.better,
            "met": self.is_met,
        }

    def cells(self) -> list[str]:
        ratio = ""
        if self.ratios:
            ratio = f"{statistics.median(self.ratios):.2f} ({_spread(self.ratios)})"
        bare = number(statistics.median(self.bare)) if self.bare else ""
        ours = number(statistics.median(self.ours))
        if not self.ratios and len(self.ours) > 1:
            ours += f" ({_spread(self.ours)})"
        sign = "≤" if self.better == "lower" else "≥"
        target = f"{sign} {self.target:g}" if self.target is not None else ""
        met = {True: "yes", False: "no", None: ""}[self.is_met]
        return [f"{self.name} ({self.unit})" if self.unit else self.name, ours, bare, ratio, target, met]


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def _spread(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


HEADINGS = ("", "contextapp", "bare view", "ratio (spread)", "target", "met")


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table."""
    print(f"| {' | '.join(headings)} |")
    print(f"| {' | '.join('---' for _ in headings)} |")
    for cells in rows:
        print(f"| {' | '.join(cells)} |")


def report(rows: Sequence[Row], file: Path | None, **more: Any) -> None:
    """Print the table, and write it as JSON to `file`."""
    print_table(HEADINGS, [row.cells() for row in rows])
    if file is not None:
        file.write_text(json.dumps({"rows": [row.to_json() for row in rows], **more}, indent=2) + "\n")
