"""The example agents run with a model that plays a short script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from contextapp_client import AsyncContextApp, ContextApp
from scripted_model import Call, Reply, Request, ScriptedModel, Step

from tests.asynchronous import run as asynchronous_run

ROOT = Path(__file__).resolve().parents[2]
BUDGET = 4_000


def script() -> Iterable[Step]:
    """Long outputs until one is no longer shown and is retrieved; parallel calls, an error, notes."""
    yield Reply(
        "I look around.",
        (Call("read_file", {"path": "README.md"}), Call("grep", {"pattern": "def ", "path": "parcelpost"})),
    )
    yield Reply("The table.", (Call("read_file", {"path": "parcelpost/zone_table.py"}),))
    yield Reply("The log.", (Call("run_command", {"command": "cat logs/nightly.log"}),))
    yield Reply("What is missing?", (Call("read_file", {"path": "missing.py"}),))
    yield _expand
    noted = {"op": "add", "field": "task", "item": "Look around"}
    yield Reply("Notes.", (Call("update_working_memory", {"operations": [noted]}),))
    yield Reply("I am done.")


def _expand(request: Request) -> Reply:
    handle = request.handle("nightly.log")
    return Reply("The errors.", (Call("expand_clip", {"handle": handle, "grep": "ERROR"}),))


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_an_agent_works_within_its_budget(
    kind: str, app: ContextApp, project_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent: Any
    with ScriptedModel(script()) as model:
        if kind == "anthropic":
            import anthropic_agent

            monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
            agent = anthropic_agent.Agent(app, project_folder, model="claude-sonnet-5-5", budget=BUDGET)
        else:
            import openai_agent

            monkeypatch.setenv("OPENAI_BASE_URL", f"{model.url}/v1")
            agent = openai_agent.Agent(app, project_folder, model="gpt-5", budget=BUDGET)
        agent.run("Look around.")
    turns = list(agent.session.turns())
    said = [json.dumps(turn["messages"]) for turn in turns]
    assert len(turns) == 8
    assert "InvalidOperation" in said[5], "expand_clip brought the log's errors back"
    assert "No such file" in said[4]
    assert "I am done." in said[7]
    assert agent.session.memory()["memory"]["task"] == "Look around"
    info = agent.session.info()
    assert info["compactions"] > 0
    assert info["prompt"]["tokens"] <= BUDGET < info["prompt"]["raw_tokens"]
    assert all(turn["usage"] for turn in turns[1:])
    assert info["cost_microusd"] > 0


@pytest.mark.slow
def test_agents_work_at_the_same_time(
    app: ContextApp, served_url: str, api_key: str, project_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import async_agents

    def reply(request: Request) -> Reply:
        messages = request.body["messages"]
        if len(messages) > 1:
            return Reply(f"I am done with {messages[0]['content']}.")
        arguments = {"op": "add", "field": "task", "item": messages[0]["content"]}
        note = Call("update_working_memory", {"operations": [arguments]})
        return Reply("I look.", (Call("read_file", {"path": "README.md"}), note))

    async def work(tasks: list[str]) -> list[str]:
        async with AsyncContextApp(served_url, api_key) as client:
            agents = async_agents.Agents(client, project_folder, model="claude-sonnet-5-5")
            return await agents.run(tasks)

    tasks = [f"task {number}" for number in range(5)]
    with ScriptedModel(repeat(reply)) as model:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        assert asynchronous_run(work(tasks)) == [f"I am done with {task}." for task in tasks]
    found = {info["title"]: app.session(info["id"]) for info in app.sessions(agent="async-example")}
    assert sorted(found) == tasks
    for task, session in found.items():
        assert session.memory()["memory"]["task"] == task
        assert len(list(session.turns())) == 3


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_it_runs_as_a_program(kind: str, served_url: str, api_key: str, project_folder: Path) -> None:
    with ScriptedModel(
        [Reply("Which?", (Call("grep", {"pattern": "cost nothing"}),)), Reply("Done.")]
    ) as model:
        base = model.url if kind == "anthropic" else f"{model.url}/v1"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                str(ROOT / folder) for folder in ("examples", "clients/python/src")
            ),
            "CONTEXTAPP_URL": served_url,
            "CONTEXTAPP_API_KEY": api_key,
            f"{kind.upper()}_BASE_URL": base,
        }
        program = [
            sys.executable,
            str(ROOT / "examples" / f"{kind}_agent.py"),
            str(project_folder),
            "Find it.",
        ]
        done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
        incomplete = subprocess.run(
            program, env=environment | {"CONTEXTAPP_API_KEY": ""}, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert incomplete.returncode == 2
    assert incomplete.stderr.splitlines()[-1].endswith("error: set CONTEXTAPP_API_KEY")
    [session] = ContextApp(served_url, api_key).sessions(agent=f"{kind}-example")
    assert session["turns"] == 3
    assert session["title"] == "parcelpost"
