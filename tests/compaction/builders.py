"""Small transcripts, and checks that do not use contextapp's code."""

from __future__ import annotations

import json
import re
from typing import Any

from compaction import dialects
from compaction.messages import Message
from compaction.planning.pipeline import Plan, PlanRequest, plan
from compaction.policy import Budget, Policy, get_policy
from compaction.sizes.tokens import CharacterCounter
from compaction.view import View, apply
from tests.compaction.providers import faults as provider_faults

COUNTER = CharacterCounter()

JSON = dict[str, Any]


def system(text: str = "You are a careful engineer.") -> JSON:
    return {"role": "system", "content": text}


def user(text: str) -> JSON:
    return {"role": "user", "content": text}


def assistant(text: str) -> JSON:
    return {"role": "assistant", "content": text}


def call(call_id: str, name: str, text: str | None = None, **arguments: Any) -> JSON:
    return calls((call_id, name, arguments), text=text)


def calls(*specs: tuple[str, str, JSON], text: str | None = None) -> JSON:
    """Return one assistant message with parallel calls."""
    made = [
        {"id": i, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for i, name, arguments in specs
    ]
    return {"role": "assistant", "content": text, "tool_calls": made}


def result(call_id: str, text: str) -> JSON:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def lines(count: int, width: int = 60, word: str = "value") -> str:
    """Return a file of `count` different lines."""
    return "\n".join(f"{word}_{n} = {n}".ljust(width, "#") for n in range(count))


def parse(items: list[JSON], format: str = "openai") -> tuple[Message, ...]:
    return dialects.parse(items, format=format, counter=COUNTER)


def view_of(items: list[JSON], format: str = "openai") -> View:
    return apply((), parse(items, format))


def planned(view: View, budget: int, policy: Policy | str = "balanced", **options: Any) -> Plan:
    """Plan a compaction of a view. `options` are further fields of the `PlanRequest`."""
    chosen = get_policy(policy) if isinstance(policy, str) else policy
    limit = Budget(input_tokens=budget)
    return plan(PlanRequest(view=view, policy=chosen, counter=COUNTER, budget=limit, **options))


def tool_loop(steps: int, *, parallel: int = 1, width: int = 40) -> list[JSON]:
    """Return one request followed only by tool calls, which many trimmers break."""
    items = [system(), user("Make the tests pass.")]
    for step in range(steps):
        ids = [f"c{step}_{n}" for n in range(parallel)]
        specs = [(i, "read_file", {"path": f"src/mod_{step}_{n}.py"}) for n, i in enumerate(ids)]
        items.append(calls(*specs, text=f"Looking at module {step}."))
        items += [result(i, lines(width, word=f"step{step}_{n}")) for n, i in enumerate(ids)]
    return items


def dialogue(turns: int, width: int = 10) -> list[JSON]:
    """Return turns of a user, each with a call."""
    items = [system(), user("Help me with the pool.")]
    for turn in range(turns):
        items += [
            call(f"d{turn}", "bash", command=f"pytest -q tests/test_{turn}.py"),
            result(f"d{turn}", lines(width, word=f"test_{turn}")),
            assistant(f"Test {turn} is done, the figure is {1000 + turn}."),
            user(f"Go on with item {turn + 1}."),
        ]
    return items


def faults(items: list[JSON], format: str) -> list[str]:
    """Return the violations of provider rules. A call may be open at the end."""
    if format in ("openai-responses", "gemini"):
        return provider_faults(items, format) if items else []
    return _anthropic_faults(items) if format == "anthropic" else _openai_faults(items)


def _openai_faults(items: list[JSON]) -> list[str]:
    found: list[str] = []
    waiting: list[str] = []
    for n, item in enumerate(items):
        if item["role"] == "tool":
            if item["tool_call_id"] not in waiting:
                found.append(f"{n}: stray result")
            else:
                waiting.remove(item["tool_call_id"])
            continue
        if waiting:
            found.append(f"{n}: calls {waiting} not answered")
        waiting = [c["id"] for c in item.get("tool_calls") or []]
        if len(set(waiting)) < len(waiting):
            found.append(f"{n}: one id twice")
        arguments = [c["function"]["arguments"] for c in item.get("tool_calls") or []]
        found += [f"{n}: arguments {a}" for a in arguments if not isinstance(json.loads(a), dict)]
        if item.get("content") is None and not waiting:
            found.append(f"{n}: no content")
    if waiting and items[-1]["role"] == "tool":
        found.append(f"end: calls {waiting} not answered")
    return found


def _anthropic_faults(items: list[JSON]) -> list[str]:
    found: list[str] = []
    merged: list[tuple[str, list[JSON]]] = []
    for n, item in enumerate(items):
        content = item["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks or any(b["type"] == "text" and not b["text"].strip() for b in blocks):
            found.append(f"{n}: empty")
        if merged and merged[-1][0] == item["role"]:
            merged[-1][1].extend(blocks)
        else:
            merged.append((item["role"], list(blocks)))
    if merged and merged[0][0] != "user":
        found.append("0: not from the user")
    seen: set[str] = set()
    waiting: list[str] = []
    for n, (role, blocks) in enumerate(merged):
        if role not in ("user", "assistant"):
            found.append(f"{n}: role {role}")
        uses = [b["id"] for b in blocks if b["type"] == "tool_use"]
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        if sorted(results) != sorted(waiting):
            found.append(f"{n}: results {results} for {waiting}")
        if [b["type"] == "tool_result" for b in blocks] != sorted(
            (b["type"] == "tool_result" for b in blocks), reverse=True
        ):
            found.append(f"{n}: results not first")
        found += [f"{n}: id {u!r}" for u in uses if u in seen or not re.fullmatch("[a-zA-Z0-9_-]+", u)]
        seen.update(uses)
        waiting = uses
    return found
