"""Six failure modes of compacted agents, each tested with the whole system over HTTP.

Lost edit, stale duplicate, stale belief, compaction in mid-plan, memory bloat, a secret in a tool result. The
web server is real; the functions of workers are called directly between requests.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
import requests

from accounts.models import Project
from accounts.services.api_keys import api_key_create
from compaction.validation import validate
from sessions.services.memory.auto_updates import memory_update
from tests.api.talk import output
from tests.compaction.builders import assistant, call, result, user

pytestmark = pytest.mark.django_db(transaction=True)

BUDGET = 3_000
GUARD = "if idle_for(conn) > MAX_IDLE_SECONDS: self._evict(conn)"


class Agent:
    """One session of an agent, using the HTTP API."""

    def __init__(self, url: str, key: str, **options: Any) -> None:
        self._http = requests.Session()
        self._http.headers["Authorization"] = f"Bearer {key}"
        self._url = f"{url}/api/v1/sessions/"
        body = {"id": "s1", "format": "openai", "budget": {"input_tokens": BUDGET}, **options}
        self.id = UUID(self._http.post(self._url, json=body, timeout=30).json()["id"])
        self._calls = 0

    def send(self, method: str, path: str, **options: Any) -> requests.Response:
        return self._http.request(method, f"{self._url}s1/{path}", timeout=30, **options)

    def push(self, *messages: dict[str, Any]) -> dict[str, Any]:
        response = self.send("POST", "turns/", json={"messages": list(messages)})
        assert response.status_code == 201, response.text
        memory_update(session_id=self.id)
        pushed: dict[str, Any] = response.json()
        return pushed

    def does(self, name: str, text: str, **arguments: Any) -> dict[str, Any]:
        """A turn with one tool call and its output."""
        self._calls += 1
        made = f"c{self._calls}"
        return self.push(call(made, name, **arguments), result(made, text), assistant("On we go."))

    def reads_much(self, turns: int = 8) -> None:
        """Push so much that all earlier turns are compacted."""
        for number in range(turns):
            self.does("read_file", output(self._calls * 100 + number, 40), path=f"src/other_{self._calls}.py")

    def uses_memory(self, *operations: dict[str, str], reason: str = "") -> dict[str, Any]:
        """Return the result of the agent's tool."""
        arguments = {"operations": list(operations), "reason": reason}
        called = {"name": "update_working_memory", "arguments": arguments}
        answer: dict[str, Any] = self.send("POST", "tool_calls/", json=called).json()
        return answer

    def prompt(self) -> str:
        """Return the whole prompt, and check that it is valid and fits."""
        response = self.send("GET", "prompt/").json()
        assert validate(response["messages"], "openai") == ()
        assert response["fits"]
        return "\n".join(str(message.get("content")) for message in response["messages"])

    def memory(self) -> dict[str, Any]:
        shown: dict[str, Any] = self.send("GET", "memory/").json()
        return shown

    def compactions(self) -> list[dict[str, Any]]:
        done: list[dict[str, Any]] = self.send("GET", "compactions/").json()["data"]
        return done


@pytest.fixture
def key(project: Project) -> str:
    Project.objects.filter(pk=project.pk).update(memory_upkeep=True)
    return api_key_create(project=project, name="agent")[1]


@pytest.fixture
def agent(served_url: str, key: str) -> Agent:
    made = Agent(served_url, key)
    made.push(user("Make the pool evict idle connections."), assistant("I look at it."))
    return made


def test_a_lost_edit(agent: Agent) -> None:
    """The lines of an edit remain in the prompt, so the model does not repeat the edit."""
    agent.does("edit", "updated", file_path="src/pool.py", old_string="pass", new_string=GUARD)
    agent.reads_much()
    assert agent.compactions()
    prompt = agent.prompt()
    assert f"+{GUARD}" in prompt
    assert "[Working memory]" in prompt


def test_a_stale_duplicate(agent: Agent) -> None:
    """A file changed between two reads: the second read is kept, and the first is not shown as current."""
    agent.does("read_file", "pool_size: 10\n" + output(1, 20), path="config.yaml")
    agent.reads_much(2)
    agent.does("read_file", "pool_size: 25\n" + output(1, 20), path="config.yaml")
    agent.reads_much(3)
    assert agent.compactions()
    prompt = agent.prompt()
    assert "pool_size: 10" not in prompt
    contents = agent.send("GET", "search/", params={"q": "pool_size"}).json()["data"]
    reads = [found for found in contents if found["role"] == "tool"]
    assert len(reads) == 2, "both reads are kept, whatever the prompt shows"


def test_a_stale_duplicate_that_is_recent_is_shown_whole(agent: Agent) -> None:
    agent.does("read_file", "pool_size: 10\n" + output(1, 10), path="config.yaml")
    agent.reads_much()
    agent.does("read_file", "pool_size: 25\n" + output(1, 10), path="config.yaml")
    prompt = agent.prompt()
    assert "pool_size: 25" in prompt
    assert "pool_size: 10" not in prompt


def test_a_stale_belief(agent: Agent) -> None:
    """Items that a tool result contradicts are marked in the prompt, with the reason."""
    patch = {"decisions": ["the test framework is pytest"]}
    agent.send("PATCH", "memory/?author=model", json=patch, headers={"If-Match": "*"})
    agent.does("bash", "Ran 3 tests in 0.1s\n\nOK", command="python -m unittest")
    [item] = [item for item in agent.memory()["items"] if item["field"] == "decisions"]
    assert item["stale"] == "unittest has been in use since turn 1"
    agent.reads_much()
    assert "the test framework is pytest (stale: unittest has been in use since turn 1)" in agent.prompt()


def test_a_belief_confirmed_by_the_agent(agent: Agent) -> None:
    """The agent confirms an item with its tool; the same finding does not mark it again."""
    value = "the test framework is pytest"
    agent.send("PATCH", "memory/?author=person", json={"decisions": [value]}, headers={"If-Match": "*"})
    agent.does("bash", "Ran 3 tests in 0.1s\n\nOK", command="python -m unittest")
    said = agent.uses_memory({"op": "confirm", "field": "decisions", "item": value}, reason="one old module")
    assert said == {"content": "working memory is at revision 4", "is_error": False}
    step = agent.send("GET", "memory/timeline/").json()["data"][0]
    assert (step["author"], step["reason"]) == ("model", "one old module")
    assert (step["changes"], step["confirmed"]) == ([], [{"field": "decisions", "text": value}])
    again = agent.uses_memory({"op": "confirm", "field": "decisions", "item": value})
    assert again == said, "nothing was left to confirm"
    agent.does("bash", "Ran 3 tests in 0.1s\n\nOK", command="python -m unittest")
    [item] = [item for item in agent.memory()["items"] if item["field"] == "decisions"]
    assert (item["text"], item["author"], item["stale"]) == (value, "person", None)
    refused = agent.uses_memory({"op": "confirm", "field": "decisions", "item": "not there"})
    assert refused == {"content": "decisions: no item 'not there'", "is_error": True}


def test_a_compaction_in_mid_plan(served_url: str, key: str) -> None:
    """Background triggers wait for the end of a tool loop, and the plan survives the hard trigger."""
    agent = Agent(served_url, key, policy={"soft": 0.2, "target": 0.1})
    agent.push(user("Mend the pool."), assistant("A plan of four steps."))
    plan = {"next": "step 3 of 4: make evict() monotonic, then run tests/test_pool.py"}
    agent.send("PATCH", "memory/?author=model", json=plan, headers={"If-Match": "*"})
    opened = agent.push(call("open", "read_file", path="src/pool.py"))
    assert opened["fired"] == []
    filled = agent.push(result("open", output(7, 60)), call("again", "read_file", path="src/a.py"))
    assert filled["prompt"]["tokens"] > 0.2 * BUDGET
    assert filled["fired"] == []
    agent.push(result("again", "a = 1"), assistant("Both are read."))
    agent.reads_much()
    assert plan["next"] in agent.prompt()


def test_memory_bloat(agent: Agent) -> None:
    """Automatic items stay small; writers of large memories are warned, then rejected."""
    agent.does("write", "ok", file_path="big.py", content="\n".join(f"value_{n} = {n}" for n in range(4_000)))
    for number in range(12):
        failures = "\n".join(f"FAILED tests/test_{number}.py::test_{n} - AssertionError" for n in range(40))
        agent.does("bash", f"{failures}\n40 failed", command=f"pytest tests/test_{number}.py")
    assert agent.memory()["tokens"] <= 800
    large = {"decisions": ["word " * 700]}
    warned = agent.send("PATCH", "memory/", json=large, headers={"If-Match": "*"}).json()
    assert "800" in warned["warning"]
    refused = agent.send("PATCH", "memory/", json={"tried": ["word " * 2_000]}, headers={"If-Match": "*"})
    assert refused.status_code == 422
    assert refused.json()["error"]["param"] == "tried"
    assert "The largest fields: tried (" in refused.json()["error"]["message"]
    agent.reads_much(1)
    assert agent.memory()["tokens"] <= 1_500


def test_a_secret_in_a_tool_result(agent: Agent) -> None:
    """It is redacted before anything is stored, so it reaches no prompt, recap or memory."""
    secret = "ghp_" + "a1B2" * 9
    failure = f"exit code: 1\nerror: token {secret} was refused"
    agent.does("bash", failure, command="make deploy")
    agent.does("edit", "ok", file_path="deploy.py", old_string="x", new_string=f"TOKEN = '{secret}'")
    shown = agent.memory()
    assert any("[redacted:" in blocker for blocker in shown["memory"]["blockers"])
    assert "[redacted:" in shown["memory"]["recent_edits"][0]
    agent.reads_much()
    assert agent.compactions()
    everything = [agent.send("GET", path).text for path in ("memory/", "memory/timeline/", "turns/?last=200")]
    assert secret not in agent.prompt() + "".join(everything)
