"""A new strategy or trigger is one file and one line: everything else follows from the registry.

Each test copies the package, adds the file and the line, and uses the result in another process, as a
contributor would.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from compaction.policy import Policy, get_policy
from compaction.policy_tables import strategies_table, triggers_table
from compaction.strategies import STRATEGIES
from compaction.triggers import TRIGGERS
from compaction.triggers.requested import REQUESTED

ROOT = Path(__file__).resolve().parents[2]

STRATEGY = """
from compaction.strategies.base import FULL, StepResult, Strategy

NAME = "shout"

def run(view, context):
    edits = []
    for output in context.outputs(view):
        if output.is_editable:
            edits.append(context.replace(
                NAME, output.position, output.part, lambda handle: "LOUD", reason="too quiet"))
    return StepResult.shortened(view, edits, goal=context.goal)

STRATEGY = Strategy(
    name=NAME, meaning="Shouted.", description="Shouts.", run=run, is_free=True, presets=FULL | {"masking"})
"""

TRIGGER = """
from compaction.triggers.base import Trigger

def condition(state, policy):
    return state.tokens == 4_321

TRIGGER = Trigger(
    name="moon", meaning="The moon was full.", description="The moon is full.", condition=condition,
    is_background=True)
"""

USE_STRATEGY = """
from compaction.planning.pipeline import PlanRequest, plan
from compaction.policy import PRESETS, Budget, Policy
from compaction.policy_tables import strategies_table
from compaction.strategies import STRATEGIES
from tests.compaction.builders import COUNTER, dialogue, view_of

request = PlanRequest(
    view=view_of(dialogue(40)), policy=Policy(), counter=COUNTER, budget=Budget(input_tokens=2_000))
record = plan(request).record
print(json.dumps({
    "steps": record.strategies,
    "recorded": record.to_json()["steps"][0]["name"],
    "presets": [name for name, policy in PRESETS.items() if "shout" in policy.steps],
    "accepted": Policy.from_json({"preset": "off", "steps": ["shout"]}).steps,
    "tooltip": STRATEGIES["shout"].meaning,
    "documented": "| `shout` | Shouts. |" in strategies_table(),
}))
"""

USE_TRIGGER = """
from compaction.policy import Policy
from compaction.policy_tables import triggers_table
from compaction.triggers import TRIGGERS, TriggerState, evaluate

trigger = evaluate(TriggerState(tokens=4_321, budget=100_000), Policy())
print(json.dumps({
    "name": trigger.name,
    "tooltip": TRIGGERS["moon"].meaning,
    "held_back": evaluate(TriggerState(tokens=4_321, budget=100_000, open_calls=1), Policy()) is None,
    "documented": "| `moon` | The moon is full. |" in triggers_table(),
}))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that may be changed."""
    shutil.copytree(
        ROOT / "compaction", tmp_path / "compaction", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path


def add(package: Path, registry: str, module: str, source: str, *, before: str) -> None:
    """Add a module to a registry: the file, and the one line that lists it."""
    folder = package / "compaction" / registry
    (folder / f"{module}.py").write_text(source)
    listing = folder / "__init__.py"
    text = listing.read_text()
    assert text.count(before) == 1
    listing.write_text(text.replace(before, f'"{module}", {before}'))


def run(package: Path, script: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", f"import json\n{script}"],
        env={"PYTHONPATH": f"{package}:{ROOT}"},
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.processes
def test_a_strategy_is_one_file_and_one_line(package: Path) -> None:
    add(package, "strategies", "shout", STRATEGY, before='"dedupe",')
    assert run(package, USE_STRATEGY) == {
        "steps": ["shout", "recap"],
        "recorded": "shout",
        "presets": ["masking", "balanced", "aggressive"],
        "accepted": ["shout"],
        "tooltip": "Shouted.",
        "documented": True,
    }


@pytest.mark.processes
def test_a_trigger_is_one_file_and_one_line(package: Path) -> None:
    add(package, "triggers", "moon", TRIGGER, before='"hard",')
    assert run(package, USE_TRIGGER) == {
        "name": "moon",
        "tooltip": "The moon was full.",
        "held_back": True,
        "documented": True,
    }


@pytest.mark.parametrize("registry", [STRATEGIES, TRIGGERS], ids=["strategies", "triggers"])
def test_every_module_is_registered_under_its_name(registry: dict[str, Any]) -> None:
    """If this fails, a module is not registered, or has the name of another one, for example after a copy."""
    folder = ROOT / "compaction" / ("strategies" if registry is STRATEGIES else "triggers")
    names = registry.keys() - {trigger.name for trigger in REQUESTED}
    others = {"__init__", "base", "requested", "state"}
    assert names == {file.stem for file in folder.glob("*.py")} - others


@pytest.mark.parametrize("table", [strategies_table(), triggers_table()], ids=["strategies", "triggers"])
def test_the_documentation_lists_what_is_registered(table: str) -> None:
    """If this fails, copy the output of `python -m compaction.policy_tables` to the documentation."""
    assert any(table in page.read_text() for page in (ROOT / "docs").rglob("*.md"))


def test_the_documentation_has_every_setting_with_its_default() -> None:
    text = (ROOT / "docs" / "reference" / "policies.md").read_text().split("## Settings")[1].split("\n## ")[0]
    documented: dict[str, str] = {}
    for names, defaults in re.findall(r"^\| (`.*?`) \| (.*?) \|", text, re.MULTILINE):
        documented |= zip(re.findall(r"\w+", names), defaults.replace("`", "").split(", "), strict=False)
    settings = {each.name: getattr(get_policy("balanced"), each.name) for each in fields(Policy)}
    assert documented.keys() == settings.keys() - {"name", "version", "tools"}
    assert documented.pop("steps") == "all"
    assert documented.pop("summary_instructions") == "none"
    assert documented.pop("cache_write_price") == "the model's"
    assert documented.pop("cache_read_price") == "or 1.25 and 0.1 if they are unknown"
    assert {name: type(settings[name])(default) for name, default in documented.items()} == {
        name: settings[name] for name in documented
    }
