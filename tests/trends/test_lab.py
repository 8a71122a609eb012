"""The lab: simulations match the core for every position of the sliders."""

from __future__ import annotations

import json
import re

import pytest
from django.urls import reverse
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions.pages.lab.scenario import POLICIES, Scenario, simulate
from sessions.pages.lab.views import SLIDERS
from tests.plugins.examples import examples


def by_policy(scenario: Scenario) -> dict:
    return {one.policy: one for one in simulate(scenario)}


def test_without_compaction_prompts_only_grow_and_overflow():
    scenario = Scenario(window=60_000, output=10_000, turns=40)
    off = by_policy(scenario)["off"]
    assert list(off.prompts) == sorted(off.prompts)
    assert off.prompts[0] > scenario.fixed_tokens
    assert off.overflow is not None
    assert off.prompts[off.overflow - 1] <= 50_000 < off.prompts[off.overflow]
    assert off.compactions == ()


def test_other_policies_stay_within_the_budget_and_cost_less():
    found = by_policy(Scenario(window=60_000, output=10_000, turns=40))
    for name in ("baseline", "masking", "balanced", "aggressive"):
        assert found[name].overflow is None
        assert found[name].compactions
        assert found[name].cost_microusd < found["off"].cost_microusd


@pytest.mark.slow
def test_a_lower_target_leaves_smaller_prompts():
    weak, strong = (by_policy(Scenario(window=60_000, output=10_000, turns=40, target=t)) for t in (80, 20))
    assert strong["balanced"].mean < weak["balanced"].mean
    assert len(strong["balanced"].compactions) <= len(weak["balanced"].compactions)


@pytest.mark.slow
def test_a_longer_tail_leaves_larger_prompts():
    short, long = (by_policy(Scenario(window=60_000, output=10_000, turns=40, tail=t)) for t in (5, 60))
    assert short["balanced"].mean < long["balanced"].mean
    assert short["off"] == long["off"]


def test_the_components_add_up_to_the_last_prompt():
    scenario = Scenario(window=60_000, output=10_000, turns=40)
    for name, one in by_policy(scenario).items():
        assert sum(one.components.values()) == one.prompts[-1]
        assert one.components["tools"] == scenario.tools
        assert ("recap" in one.components) == (name in {"baseline", "masking", "balanced", "aggressive"})


@pytest.mark.slow
def test_names_that_the_model_uses_again_are_kept_retrievable_or_lost():
    found = by_policy(Scenario(window=60_000, output=10_000, turns=80))
    used = {one.references.used for one in found.values()}
    assert len(used) == 1
    assert used.pop() > 5
    off, baseline, balanced = (found[name] for name in ("off", "baseline", "balanced"))
    assert off.references.lost
    assert {each.why for each in off.missing} == {"over"}
    assert all(each.turn >= off.overflow for each in off.missing)
    assert baseline.references.lost > balanced.references.lost
    assert balanced.references.kept > off.references.kept
    roomy = by_policy(Scenario(window=400_000, turns=20))
    assert not any(one.missing for one in roomy.values())


def test_costs_are_proportional_to_the_price():
    one, two = (by_policy(Scenario(turns=10, price=price))["off"].cost_microusd for price in (3.0, 6.0))
    assert two == pytest.approx(2 * one, abs=1)


@pytest.mark.slow
@settings(max_examples=examples(10), deadline=None)
@given(
    st.builds(
        Scenario,
        window=st.integers(8_000, 60_000),
        turns=st.integers(5, 20),
        result=st.integers(100, 12_000),
        target=st.integers(10, 90),
        trigger=st.integers(30, 100),
        tail=st.integers(0, 80),
        system=st.integers(0, 20_000),
        tools=st.integers(0, 40_000),
    )
)
def test_every_slider_position_has_results(scenario):
    for one in simulate(scenario):
        assert len(one.prompts) == scenario.turns
        assert one.cost_microusd > 0


@pytest.mark.django_db
class TestPage:
    def ask(self, client, **query):
        return client.get(reverse("lab", args=["alpha"]), query)

    def test_the_page_loads_before_its_results(self, viewer_client):
        response = self.ask(viewer_client)
        assert b"Simulating" in response.content
        assert b"Select <b>Simulate</b> to see the results." in response.content  # without scripts
        assert all(f'id="{slider.name}"'.encode() in response.content for slider in SLIDERS)

    def test_the_results_show_what_is_missing(self, viewer_client):
        page = self.ask(viewer_client, window=60_000, output=10_000, turns=40, figures=1).content.decode()
        one = by_policy(Scenario(window=60_000, output=10_000, turns=40))["baseline"]
        lost = next(each for each in one.missing if each.why == "evicted")
        assert f"Turn {lost.turn} uses <code>{lost.name}</code>" in page
        page = self.ask(viewer_client, window=400_000, turns=5, figures=1).content.decode()
        assert "under every policy" in page

    def test_the_results_warn_about_an_overflow(self, viewer_client):
        query = {"window": 40_000, "output": 8_000, "turns": 30, "figures": 1}
        response = self.ask(viewer_client, **query)
        off = by_policy(Scenario(window=40_000, output=8_000, turns=30))["off"]
        assert f"overflows at turn {off.overflow}" in response.content.decode()
        drawn = json.loads(re.search(r'id="lab-series"[^>]*>(.*?)</script>', response.content.decode())[1])
        assert drawn["policies"][0]["prompts"] == list(off.prompts)

    def test_the_last_prompt_is_drawn_by_component(self, viewer_client):
        page = self.ask(viewer_client, window=40_000, output=8_000, turns=30, figures=1).content.decode()
        one = by_policy(Scenario(window=40_000, output=8_000, turns=30))["balanced"]
        assert f"recap: {one.components['recap']:,} tokens" in page
        assert page.count('role="img"') == len(POLICIES)

    @pytest.mark.parametrize(("result", "is_alike"), [(2_000, True), (600, False)])
    def test_the_same_result_of_two_presets_is_explained(self, viewer_client, result, is_alike):
        query = {"window": 40_000, "output": 8_000, "turns": 30, "figures": 1, "result": result}
        assert ("400 to 800 tokens" in self.ask(viewer_client, **query).text) is is_alike
        query |= {"window": 400_000, "turns": 5}
        assert "400 to 800 tokens" not in self.ask(viewer_client, **query).text

    @pytest.mark.parametrize(("target", "is_unreachable"), [(10, True), (60, False)])
    def test_a_target_below_the_fixed_tokens_and_tail_is_reported(
        self, viewer_client, target, is_unreachable
    ):
        page = self.ask(viewer_client, target=target, tail=30, turns=5, figures=1).content.decode()
        assert ("cannot be reached" in page) is is_unreachable

    def test_a_budget_below_the_fixed_tokens_is_reported(self, viewer_client):
        response = self.ask(viewer_client, window=8_000, tools=40_000, turns=5, figures=1)
        assert b"No prompt fits" in response.content

    @pytest.mark.parametrize("value", ["x", "", "-5", "99999999999", "1e400", "nan"])
    def test_invalid_values_are_clamped_to_the_sliders(self, value, viewer_client):
        odd = {slider.name: value for slider in SLIDERS} | {"turns": "5"}
        assert self.ask(viewer_client, **odd, figures=1).status_code == 200

    def test_only_the_viewer_is_queried(self, viewer_client, django_assert_num_queries):
        with django_assert_num_queries(3):
            self.ask(viewer_client, turns=5, figures=1)
