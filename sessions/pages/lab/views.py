"""The lab page and its results. It stores nothing and reads no session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from compaction.policy import PRESETS
from sessions.pages.access import page_or_fragment, viewer_of, wants_fragment
from sessions.pages.lab.scenario import Outcome, Scenario, simulate
from sessions.pages.session.prompt import COMPONENTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Slider:
    """A slider that sets the scenario's field `name`."""

    name: str
    label: str
    unit: str
    low: float
    high: float
    step: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One component of a bar. `x` and `width` are in units of the drawing."""

    key: str
    label: str
    x: str
    width: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The last prompt under a policy, by component. `limit` is the position of the budget."""

    policy: str
    tokens: int
    pieces: Sequence[Piece]
    limit: str


#: Units of a bar's viewBox, which is stretched to the column.
_BAR_WIDTH = 1_000

SLIDERS: Sequence[Slider] = (
    Slider(name="window", label="Context window", unit="tokens", low=8_000, high=1_000_000, step=4_000),
    Slider(name="output", label="Reserved for output", unit="tokens", low=1_000, high=64_000, step=1_000),
    Slider(name="system", label="System prompt", unit="tokens", low=0, high=20_000, step=250),
    Slider(name="tools", label="Tool definitions", unit="tokens", low=0, high=40_000, step=500),
    Slider(name="memory", label="Working memory", unit="tokens", low=0, high=3_000, step=100),
    Slider(name="turns", label="Session length", unit="turns", low=5, high=150, step=5),
    Slider(name="message", label="Text per turn", unit="tokens", low=20, high=2_000, step=20),
    Slider(name="result", label="Tool output per turn", unit="tokens", low=100, high=12_000, step=100),
    Slider(name="trigger", label="Compact at", unit="percent of budget", low=30, high=100, step=5),
    Slider(name="target", label="Compact down to", unit="percent of budget", low=10, high=90, step=5),
    Slider(name="tail", label="Recent messages", unit="percent of budget", low=0, high=80, step=5),
    Slider(name="price", label="Input price", unit="$ per million tokens", low=0.1, high=30, step=0.1),
)


class LabForm(forms.Form):
    """The sliders' values from the query string. Missing or invalid values use the defaults."""

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        for slider in SLIDERS:
            kind = forms.FloatField if slider.name == "price" else forms.IntegerField
            self.fields[slider.name] = kind(required=False)

    def scenario(self) -> Scenario:
        self.is_valid()
        values = {name: value for name, value in self.cleaned_data.items() if value is not None}
        return Scenario(**{name: _clamp(name, value) for name, value in values.items()})


def _clamp(name: str, value: float) -> Any:
    slider = next(slider for slider in SLIDERS if slider.name == name)
    return type(value)(min(max(value, slider.low), slider.high))


@require_safe
def lab(request: HttpRequest, slug: str) -> HttpResponse:
    """Render the sliders. A browser loads the results in a second request, so the page appears sooner."""
    viewer = viewer_of(request, slug)
    scenario = LabForm(request.GET).scenario()
    values = asdict(scenario)
    context: dict[str, Any] = {
        "viewer": viewer,
        "scenario": scenario,
        "sliders": [(slider, values[slider.name]) for slider in SLIDERS],
    }
    if wants_fragment(request) or "figures" in request.GET:
        context |= _figures(scenario)
    return page_or_fragment(request, "lab/page.html", "lab/_results.html", context)


def _figures(scenario: Scenario) -> dict[str, Any]:
    outcomes = simulate(scenario)
    return {
        "outcomes": outcomes,
        "max_cost": max(one.cost_microusd for one in outcomes),
        "overflow": next((one.overflow for one in outcomes if one.policy == "off"), None),
        "has_missing": any(one.missing for one in outcomes),
        "alike": _alike(outcomes),
        "series": _series(outcomes, scenario),
        "is_too_small": scenario.fixed_tokens >= scenario.budget,
        "bars": [_bar(one, scenario) for one in outcomes],
        "shown_components": [
            pair for pair in COMPONENTS if any(pair[0] in one.components for one in outcomes)
        ],
    }


def _alike(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Return the sizes from which `balanced` and `aggressive` collapse outputs if both have the same prompts.

    The sliders set everything else in which the two presets differ. Empty if the prompts differ, or without
    compactions, because all policies have the same prompts then.
    """
    pair = [one for one in outcomes if one.policy in {"balanced", "aggressive"}]
    is_same = len({one.prompts for one in pair}) == 1 and all(one.compactions for one in pair)
    return {one.policy: PRESETS[one.policy].collapse_tokens for one in pair} if is_same else {}


def _bar(outcome: Outcome, scenario: Scenario) -> Bar:
    """Return the bar of an outcome's last prompt. All bars of a scenario have the same scale."""
    largest = max(sum(one.components.values()) for one in simulate(scenario))
    scale = _BAR_WIDTH / max(largest, scenario.budget)
    pieces, x = [], 0.0
    for key, name in COMPONENTS:
        if tokens := outcome.components.get(key, 0):
            label = f"{name}: {tokens:,} tokens"
            pieces.append(Piece(key=key, label=label, x=f"{x:.1f}", width=f"{tokens * scale:.1f}"))
            x += tokens * scale
    return Bar(
        policy=outcome.policy,
        tokens=sum(outcome.components.values()),
        pieces=pieces,
        limit=f"{scenario.budget * scale:.1f}",
    )


def _series(outcomes: Sequence[Outcome], scenario: Scenario) -> dict[str, Any]:
    return {
        "budget": scenario.budget,
        "window": scenario.window,
        "turns": list(range(scenario.turns)),
        "policies": [{"name": one.policy, "prompts": list(one.prompts)} for one in outcomes],
    }
