"""Trajectories in the Agent Trajectory Interchange Format (ATIF), which Harbor writes for many agents.

A trajectory is one JSON document. A step of the agent is a model call with its tool calls and, as the
observation, their results. Sub-agents can be embedded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compaction.messages import Usage
from importers.base import Damage, ImportedMessage, ImportedSession, LogFile
from importers.calls import conversation_id
from importers.chat import call_ids, tool_call
from importers.jsonlines import Record, document, document_damages, list_in, read_records, take_messages
from importers.turns import Answer, TurnBuilder
from importers.values import (
    list_of,
    mapping_of,
    microusd_of,
    request_of,
    text_of,
    time_of,
    title_of,
    tokens_of,
    usage_of,
)

#: Names of files that continue a trajectory after a compaction. Their session id is that of the first.
_CONTINUED = re.compile(r"\.(cont-\d+)\.json$")


class AtifImporter:
    """Reads ATIF trajectories."""

    name = "atif"
    label = "ATIF trajectory, as written by Harbor (JSON)"

    def recognizes(self, log: LogFile) -> bool:
        value = mapping_of(document(log))
        return str(value.get("schema_version")).startswith("ATIF-") and isinstance(value.get("steps"), list)

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        yield from document_damages(log)
        value = document(log)
        part = _CONTINUED.search(log.name)
        if part and isinstance(value, dict) and "trajectory_id" not in value:
            value = {**value, "trajectory_id": f"{value.get('session_id')}-{part[1]}"}
        yield from _read(log, [value], None)


def _read(log: LogFile, values: Sequence[Any], parent: str | None) -> Iterator[ImportedSession | Damage]:
    """Yield the session of each trajectory, followed by those of its sub-agents."""
    found: list[_Trajectory] = []
    records = (Record(1, value) for value in values)
    yield from read_records(log, records, lambda record: found.append(_Trajectory(record.value)))
    for number, reading in enumerate(found, start=1):
        yield from take_messages(log, reading.steps, reading.take)
        session = reading.session(parent, number)
        yield session
        yield from _read(log, reading.children, session.external_id)


class _Trajectory:
    """The steps of one trajectory while they are read."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._facts, self.steps = facts, list_in(facts, "steps")
        self.children = list_of(facts.get("subagent_trajectories"))
        self._agent = mapping_of(facts.get("agent"))
        self._turns = TurnBuilder()
        self._bodies: list[Mapping[str, Any]] = []
        self._system: str | None = None
        self._first_words = ""

    def take(self, number: int, step: Mapping[str, Any]) -> None:
        source_id, at = f"step-{step.get('step_id', number)}", time_of(step.get("timestamp"))
        if step["source"] == "agent":
            self._take_call(step, Answer(body={}, source_id=source_id, at=at))
            return
        content = _content(step["message"])
        if step["source"] == "system" and not self._bodies:
            self._system = text_of(content)
            return
        body = {"role": step["source"], "content": content}
        self._bodies.append(body)
        self._turns.add(ImportedMessage(body=body, source_id=source_id, at=at))
        if step["source"] == "user":
            self._first_words = request_of(self._first_words, text_of(content))

    def session(self, parent: str | None, number: int) -> ImportedSession:
        """Return the session. A sub-agent without an id is named after its parent and its number."""
        facts, turns = self._facts, self._turns.turns()
        name = facts.get("trajectory_id")
        if not name:
            session = facts.get("session_id") or conversation_id(self._bodies)
            name = session if parent is None else f"{parent}-{number}"
        version = self._agent.get("version")
        return ImportedSession(
            external_id=str(name),
            parent_external_id=parent,
            format="openai",
            agent=str(self._agent.get("name") or ""),
            turns=turns,
            model=next((turn.model for turn in turns if turn.model), ""),
            title=title_of(self._first_words),
            started_at=next((turn.at for turn in turns if turn.at), None),
            system=self._system,
            tools=self._agent.get("tool_definitions"),
            metadata={"client_version": version} if isinstance(version, str) and version else {},
        )

    def _take_call(self, step: Mapping[str, Any], answer: Answer) -> None:
        """Read a model call. Copies of earlier steps, and steps without a call, are not billed."""
        calls = [
            tool_call({**call, "id": call["tool_call_id"], "name": call["function_name"]})
            for call in step.get("tool_calls") or []
        ]
        words = text_of(_content(step["message"]))
        answer.body = {"role": "assistant", "content": words or (None if calls else "")}
        if calls:
            answer.body["tool_calls"] = calls
        answer.model = str(step.get("model_name") or self._agent.get("model_name") or "")
        if not step.get("is_copied_context"):
            metrics = mapping_of(step.get("metrics"))
            answer.usage, answer.cost_microusd = _usage(metrics), microusd_of(metrics.get("cost_usd"))
        self._bodies.append(answer.body)
        self._turns.answer(answer, call_ids(answer.body))
        results = mapping_of(step.get("observation")).get("results") or []
        for number, result in enumerate(results, start=1):
            self._take_result(result, f"{answer.source_id}-{number}", answer)

    def _take_result(self, result: Mapping[str, Any], source_id: str, answer: Answer) -> None:
        content, call = _content(result.get("content") or ""), result.get("source_call_id")
        if call:
            body = {"role": "tool", "tool_call_id": str(call), "content": content}
        elif content:  # the answer of the environment to a message without a call
            body = {"role": "user", "content": content}
        else:
            return
        self._turns.add_chat(ImportedMessage(body=body, source_id=source_id, at=answer.at, is_meta=not call))


def _content(content: Any) -> Any:
    """Return a message as text, or as parts if it contains images, which are paths."""
    if isinstance(content, str):
        return content
    parts: Sequence[Mapping[str, Any]] = content or []
    if all(part.get("type") == "text" for part in parts):
        return text_of(parts)
    return [_part(part) for part in parts]


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    source = mapping_of(part.get("source"))
    path = str(source.get("path") or "")
    if part.get("type") == "text":
        return {"type": "text", "text": part["text"]}
    if path.startswith(("http://", "https://", "data:")):
        return {"type": "image_url", "image_url": {"url": path}}
    return {"type": "text", "text": f"[{source.get('media_type') or 'image'}: {path}]"}


def _usage(metrics: Mapping[str, Any]) -> Usage | None:
    """Return the usage; `prompt_tokens` contain the cached tokens."""
    prompt, cached = tokens_of(metrics, "prompt_tokens"), tokens_of(metrics, "cached_tokens")
    return usage_of(prompt=prompt, cached=cached, output=tokens_of(metrics, "completion_tokens"))
