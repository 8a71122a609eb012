"""Check what the instance has stored against what it acknowledged."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote

import orjson

from bench.chaos.writers import Agent, Api

_CLOSED = {"done", "skipped", "failed", "reverted"}

#: Seconds in which open compactions must end.
_SETTLE = 150.0


def audit(api: Api, agents: Sequence[Agent]) -> Counter[str]:
    """Return the number of each kind of violation, 0 for those that did not occur."""
    found = Counter(dict.fromkeys(("lost", "doubled", "changed", "misplaced"), 0))
    for agent in agents:
        found.update(_turns(api, agent))
    found["open compactions"] = _open_compactions(api, agents)
    found["invalid prompts"] = sum(_is_invalid(api, agent) for agent in agents)
    found["wrong answers"] = sum(len(agent.problems) for agent in agents)
    return found


def _turns(api: Api, agent: Agent) -> Counter[str]:
    """Compare the stored turns, byte by byte, with the acknowledged ones."""
    stored: dict[int, bytes] = {}
    cursor, found, positions = "", Counter[str](), 0
    while True:
        status, body = api.call("GET", f"sessions/{agent.name}/turns/?limit=50{cursor}")
        if status != 200:
            time.sleep(1)
            continue
        page = orjson.loads(body)
        for turn in page["data"]:
            found["doubled"] += turn["turn"] in stored
            stored[turn["turn"]] = body
            placed = turn["positions"]
            found["misplaced"] += placed is None or placed["first"] != positions
            positions = placed["last"] + 1 if placed else positions
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={quote(page['next_cursor'])}"
    for turn, messages in agent.acknowledged.items():
        if turn not in stored:
            found["lost"] += 1
        elif b'"messages":[' + b",".join(messages) + b"]" not in stored[turn]:
            found["changed"] += 1
    # The last request of an agent may be stored without having been acknowledged.
    found["doubled"] += max(0, len(stored) - len(agent.acknowledged) - 1)
    return found


def _open_compactions(api: Api, agents: Sequence[Agent]) -> int:
    until = time.monotonic() + _SETTLE
    while True:
        states = [
            row["state"]
            for agent in agents
            for row in api.get(f"sessions/{agent.name}/compactions/?limit=200")["data"]
        ]
        count = sum(state not in _CLOSED for state in states)
        if not count or time.monotonic() > until:
            return count
        time.sleep(3)


def _is_invalid(api: Api, agent: Agent) -> bool:
    prompt = api.get(f"sessions/{agent.name}/prompt/")
    body = orjson.dumps({"messages": prompt["messages"], "format": "anthropic"})
    status, answer = api.call("POST", "prompts/validate/", body)
    # The last tool call has no result yet.
    rules = {row["rule"] for row in orjson.loads(answer)["violations"]} if status == 200 else {"?"}
    return bool(rules - {"open_tool_call", "A1"}) or not prompt["fits"]
