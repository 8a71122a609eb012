"""The benchmark's measures: kept, distant and far references, and the cost of prompts."""

import json

import pytest

from bench.ours import Ours
from bench.replay import Case, replay
from bench.rivals import RIVALS, Raw
from compaction.dialects import parse
from compaction.policy import get_policy
from compaction.sizes.tokens import CharacterCounter

COUNTER = CharacterCounter()


@pytest.fixture(scope="module")
def case() -> Case:
    """Sixty reads; each tenth call needs the content of the read eight calls earlier."""
    items: list[dict[str, object]] = [{"role": "user", "content": "Find out what calls what."}]
    for n in range(60):
        wanted = f" after told_name_{n - 8}" if n % 10 == 9 else ""
        arguments = json.dumps({"path": f"src/file_{n}.py"})
        function = {"name": "read_file", "arguments": arguments}
        call = {"id": f"c{n}", "type": "function", "function": function}
        items.append({"role": "assistant", "content": f"Reading{wanted}.", "tool_calls": [call]})
        text = f"told_name_{n} " + "plain words " * 100
        items.append({"role": "tool", "tool_call_id": f"c{n}", "content": text})
    return Case("made", "openai", parse(items, format="openai", counter=COUNTER), 3_500)


def test_sending_everything_keeps_everything_and_overflows(case: Case) -> None:
    score = replay(case, Raw(case, COUNTER), check=False)
    assert score.steps == 60
    assert score.fits < 60
    assert score.references["distant"] == 6
    assert score.compactions == 0


def test_a_window_loses_what_an_oracle_keeps(case: Case) -> None:
    window = replay(case, RIVALS["window, batches to 50 %"](case, COUNTER))
    oracle = replay(case, RIVALS["oracle"](case, COUNTER))
    assert window.valid == window.fits == oracle.valid == oracle.fits == 60
    assert window.kept["all"] < window.references["all"]
    assert oracle.kept == oracle.references


def test_cutting_at_every_turn_costs_more_than_in_batches(case: Case) -> None:
    every_turn = replay(case, RIVALS["window, every turn"](case, COUNTER), check=False)
    batches = replay(case, RIVALS["window, batches to 50 %"](case, COUNTER), check=False)
    assert every_turn.cost[0] > 2 * batches.cost[0]
    assert every_turn.cost[1] < every_turn.cost[0]


def test_the_balanced_policy_keeps_references(case: Case) -> None:
    score = replay(case, Ours(case, COUNTER, get_policy("balanced")))
    assert score.valid == score.fits == 60
    assert score.kept["all"] == score.references["all"]
