"""The parameters of the provider's engine, and summaries that a provider wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compaction import dialects
from compaction.capabilities import Capabilities, capabilities_of
from compaction.errors import PolicyError
from compaction.planning.pipeline import PlanRequest, plan
from compaction.policy import Budget, Policy, get_policy
from compaction.provider_engine import ProviderReport, clear_at_least, provider_params
from compaction.rendering import render
from compaction.triggers import TriggerState, evaluate
from compaction.validation import validate
from compaction.view import apply
from tests.compaction.builders import COUNTER, lines, user
from tests.compaction.providers import faults

OPUS = capabilities_of("claude-opus-4-6")
PROVIDER = Policy.from_json({"engine": "provider", "tools": [{"pattern": "mcp__*", "exempt": True}]})


def edits_of(policy: Policy = PROVIDER, *, budget: int = 200_000, **options: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"format": "anthropic", "capabilities": OPUS, **options}
    params = provider_params(policy, budget=budget, **fields)
    assert params is not None
    return {edit["type"]: edit for edit in params.context_management["edits"]}


def test_anthropics_edits_follow_the_policy() -> None:
    params = provider_params(
        PROVIDER, format="anthropic", budget=200_000, capabilities=OPUS, tools=["Bash", "mcp__docs"]
    )
    assert params is not None
    thinking, tools, summary = params.context_management["edits"]
    assert thinking == {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 2}}
    assert tools["trigger"] == {"type": "input_tokens", "value": 140_000}
    assert tools["keep"] == {"type": "tool_uses", "value": 2}
    assert tools["exclude_tools"] == ["mcp__docs"]
    assert summary["trigger"]["value"] == 190_000
    assert params.betas == ("context-management-2025-06-27", "compact-2026-01-12")


def test_openais_threshold_follows_the_policy() -> None:
    params = provider_params(PROVIDER, format="openai-responses", budget=200_000, capabilities=Capabilities())
    assert params is not None
    assert params.context_management == [{"type": "compaction", "compact_threshold": 190_000}]
    assert params.betas == ()


def test_chat_completions_and_the_own_engine_have_no_parameters() -> None:
    for policy, format in ((PROVIDER, "openai"), (Policy(), "anthropic")):
        assert provider_params(policy, format=format, budget=9, capabilities=OPUS) is None


def test_a_summary_needs_a_model_that_writes_it_and_a_large_budget() -> None:
    assert "compact_20260112" not in edits_of(budget=40_000)
    assert "compact_20260112" not in edits_of(capabilities=capabilities_of("claude-sonnet-4-5"))
    assert "The plan" in edits_of(memory="The plan")["compact_20260112"]["instructions"]


def test_the_policys_instructions_are_passed_on() -> None:
    policy = replace(PROVIDER, summary_instructions="Keep every port.")
    assert "Keep every port." in edits_of(policy=policy)["compact_20260112"]["instructions"]


def test_bound_thinking_is_kept() -> None:
    edits = edits_of(capabilities=capabilities_of("claude-opus-5-5"))
    assert list(edits) == ["clear_tool_uses_20250919", "compact_20260112"]


def test_clearing_pays_back_within_twenty_turns() -> None:
    for read in (0.1, 0.05, 0.025):
        policy = Policy(cache_read_price=read, target=0.01)
        cleared = clear_at_least(policy, trigger=100_000, budget=100_000)
        turns = (1.25 - read) / read * (100_000 - cleared) / cleared
        assert turns == pytest.approx(20, rel=0.001)
    assert clear_at_least(Policy(), trigger=70_000, budget=100_000) <= 30_000


def test_the_clients_edits_take_precedence() -> None:
    params = provider_params(PROVIDER, format="anthropic", budget=200_000, capabilities=OPUS)
    assert params is not None
    own = {"type": "clear_thinking_20251015", "keep": "all"}
    merged = params.merged({"edits": [own]})
    assert merged["edits"][0] == own
    assert [edit["type"] for edit in merged["edits"]].count("clear_thinking_20251015") == 1
    assert len(merged["edits"]) == 3


def test_an_unknown_engine_is_rejected() -> None:
    with pytest.raises(PolicyError, match="engine"):
        Policy.from_json({"engine": "theirs"})


def test_no_trigger_fires_under_the_providers_engine() -> None:
    state = TriggerState(tokens=99, budget=100, has_provider_engine=True)
    assert evaluate(state, Policy()) is None


def test_reports_are_read_leniently() -> None:
    assert ProviderReport.of(None, None, None) is None
    assert ProviderReport.of({"applied_edits": "x"}, 7, {"iterations": [{"type": "message"}]}) is None
    report = ProviderReport.of(
        {
            "applied_edits": [
                {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 50}
            ]
        },
        [{"type": "thinking_dropped"}, {"type": "thinking_mismatch_allowed"}],
        {"iterations": [{"type": "compaction", "input_tokens": 9}, {"type": "message"}]},
    )
    assert report is not None
    assert (report.cleared_tokens, report.cleared_outputs, report.dropped, len(report.calls)) == (50, 8, 1, 1)


SUMMARY = {"type": "compaction", "content": "We read a.py.", "signature": "s"}


def use(id: str) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": f"{id}.py"}}
    result = {"type": "tool_result", "tool_use_id": id, "content": lines(80, word=id)}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def test_a_summary_of_the_provider_stays_first_and_unchanged() -> None:
    first = {"role": "assistant", "content": [SUMMARY, {"type": "text", "text": "Going on."}]}
    items = [first, user("Read all."), *(item for n in range(12) for item in use(f"f{n}"))]
    assert validate(items, "anthropic") == ()
    messages = dialects.parse(items, format="anthropic", counter=COUNTER)
    request = PlanRequest(
        view=apply((), messages),
        policy=get_policy("aggressive"),
        counter=COUNTER,
        budget=Budget(input_tokens=3_000),
    )
    shown = render(plan(request).view.messages, format="anthropic").messages
    assert len(str(shown)) < len(str(items)) / 2
    assert shown[0] == first
    assert validate(shown, "anthropic") == ()
    for format in ("openai", "openai-responses"):
        translated = render(messages, format=format).messages
        assert "We read a.py." in str(translated[0])
        assert faults(translated, format) == []
