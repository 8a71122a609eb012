"""The lab's page and its figures. Nothing is stored, and no session is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from sessions.pages.access import page_or_fragment, viewer_of, wants_fragment
from sessions.pages.lab.scenario import Outcome, Scenario, outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class Slider:
    """`name` is a field of the scenario."""

    name: str
    label: str
    unit: str
    least: float
    most: float
    step: float


SLIDERS: Sequence[Slider] = (
    Slider(name="window", label="Context window", unit="tokens", least=8_000, most=1_000_000, step=4_000),
    Slider(name="output", label="Kept for the answer", unit="tokens", least=1_000, most=64_000, step=1_000),
    Slider(name="system", label="System text", unit="tokens", least=0, most=20_000, step=250),
    Slider(name="tools", label="Tool definitions", unit="tokens", least=0, most=40_000, step=500),
    Slider(name="memory", label="Working memory", unit="tokens", least=0, most=3_000, step=100),
    Slider(name="turns", label="Turns", unit="turns", least=5, most=150, step=5),
    Slider(name="message", label="Words of a turn", unit="tokens", least=20, most=2_000, step=20),
    Slider(name="result", label="Tool output of a turn", unit="tokens", least=100, most=12_000, step=100),
    Slider(name="trigger", label="Compaction from", unit="% of budget", least=30, most=100, step=5),
    Slider(name="target", label="down to", unit="% of budget", least=10, most=90, step=5),
    Slider(name="price", label="Price of input", unit="$ a million tokens", least=0.1, most=30, step=0.1),
)


class LabForm(forms.Form):
    """The sliders' values as they stand in the address; what is missing or cannot be is left as it is."""

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        for slider in SLIDERS:
            kind = forms.FloatField if slider.name == "price" else forms.IntegerField
            self.fields[slider.name] = kind(required=False)

    def scenario(self) -> Scenario:
        self.is_valid()
        told = {name: value for name, value in self.cleaned_data.items() if value is not None}
        return Scenario(**{name: _within(name, value) for name, value in told.items()})


def _within(name: str, value: float) -> Any:
    slider = next(slider for slider in SLIDERS if slider.name == name)
    return type(value)(min(max(value, slider.least), slider.most))


@require_safe
def lab(request: HttpRequest, slug: str) -> HttpResponse:
    """The sliders; a browser asks for the figures in a second request, so that it can show the page first."""
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
    return page_or_fragment(request, "lab/page.html", "lab/_figures.html", context)


def _figures(scenario: Scenario) -> dict[str, Any]:
    found = outcomes(scenario)
    worst = max(found, key=lambda one: one.cost_microusd)
    return {
        "outcomes": found,
        "dearest": worst.cost_microusd,
        "overflow": next((one.overflow for one in found if one.policy == "off"), None),
        "series": _series(found, scenario),
        "is_too_small": scenario.beside >= scenario.budget,
    }


def _series(found: Sequence[Outcome], scenario: Scenario) -> dict[str, Any]:
    return {
        "budget": scenario.budget,
        "window": scenario.window,
        "turns": list(range(scenario.turns)),
        "policies": [{"name": one.policy, "prompts": list(one.prompts)} for one in found],
    }
