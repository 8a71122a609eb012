"""tau-bench's and tau2-bench's results: many simulated conversations in one JSON document.

The session is the *agent's*: in tau2-bench the simulated user may run tools of its own, which the agent never
sees. The agent's greeting was put there by the bench and no model made it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .base import Damage, ImportedMessage, ImportedSession, LogFile
from .chat import call_ids, chat_body, chat_usage
from .jsonlines import document
from .turns import Answer, TurnBuilder
from .values import mapping_of, microusd_of, text_of, time_of, title_of

_ERRORS = (KeyError, TypeError, AttributeError, ValueError)


class TauBenchImporter:
    """Reads tau-bench's results: a list of `{task_id, trial, reward, traj}`."""

    name = "tau-bench"
    label = "tau-bench results (JSON)"

    def recognises(self, log: LogFile) -> bool:
        value = document(log)
        first = value[0] if isinstance(value, list) and value else None
        return isinstance(first, dict) and {"task_id", "traj"} <= first.keys()

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        for number, run in enumerate(document(log), start=1):
            try:
                yield _tau_session(log, run)
            except _ERRORS as error:
                yield _damage(log, number, error)


class Tau2BenchImporter:
    """Reads tau2-bench's results: `{info, tasks, simulations}`."""

    name = "tau2-bench"
    label = "tau2-bench results (JSON)"

    def recognises(self, log: LogFile) -> bool:
        value = document(log)
        return isinstance(value, dict) and isinstance(value.get("simulations"), list) and "info" in value

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        value = document(log)
        info = mapping_of(value["info"])
        for number, simulation in enumerate(value["simulations"], start=1):
            try:
                yield _tau2_session(simulation, info)
            except _ERRORS as error:
                yield _damage(log, number, error)


def _tau_session(log: LogFile, run: Mapping[str, Any]) -> ImportedSession:
    turns = TurnBuilder()
    task = ""
    for number, message in enumerate(run["traj"], start=1):
        body = chat_body(message)
        _add(turns, body, f"message-{number}")
        if body["role"] == "user":
            task = task or text_of(body["content"])
    return ImportedSession(
        external_id=f"{log.stem}-task{run['task_id']}-trial{run.get('trial', 0)}",
        format="openai",
        agent="tau-bench",
        turns=turns.turns(),
        title=title_of(task),
        metadata={"task_id": run["task_id"], "trial": run.get("trial", 0), "reward": run.get("reward")},
    )


def _tau2_session(simulation: Mapping[str, Any], info: Mapping[str, Any]) -> ImportedSession:
    model = str(mapping_of(info.get("agent_info")).get("llm") or "")
    environment = mapping_of(info.get("environment_info"))
    turns = TurnBuilder()
    if policy := environment.get("policy"):
        body = {"role": "system", "content": str(policy)}
        turns.add(ImportedMessage(body=body, source_id="policy", is_meta=True))
    task = ""
    for message in _agents_messages(simulation["messages"]):
        _take_tau2(turns, message, model)
        if message["role"] == "user":
            task = task or text_of(message.get("content"))
    reward = mapping_of(simulation.get("reward_info")).get("reward")
    return ImportedSession(
        external_id=str(simulation["id"]),
        format="openai",
        agent="tau2-bench",
        turns=turns.turns(),
        model=model,
        title=title_of(task),
        started_at=time_of(simulation.get("start_time")),
        tags=[str(environment["domain_name"])] if environment.get("domain_name") else [],
        metadata={
            "task_id": simulation.get("task_id"),
            "trial": simulation.get("trial"),
            "reward": reward,
            "termination_reason": simulation.get("termination_reason"),
        },
    )


def _agents_messages(messages: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """What the agent said or saw: without the simulated user's own calls and their results."""
    for message in messages:
        parts = message.get("tool_messages") or [message]
        for part in parts:
            users_own = part["role"] == "tool" and part.get("requestor") == "user"
            users_call = part["role"] == "user" and not part.get("content")
            if not users_own and not users_call:
                yield part


def _take_tau2(turns: TurnBuilder, message: Mapping[str, Any], model: str) -> None:
    source_id = f"turn-{message['turn_idx']}-{message.get('id') or message['role']}"
    at = time_of(message.get("timestamp"))
    if message["role"] == "tool":
        body = {"role": "tool", "tool_call_id": str(message["id"]), "content": message.get("content") or ""}
        turns.result(body["tool_call_id"], ImportedMessage(body=body, source_id=source_id, at=at))
        return
    calls = message.get("tool_calls") if message["role"] == "assistant" else None
    body = chat_body({**message, "tool_calls": calls})
    if body["role"] != "assistant" or message["turn_idx"] == 0:
        turns.add(ImportedMessage(body=body, source_id=source_id, at=at, is_meta=body["role"] == "assistant"))
        return
    raw = mapping_of(message.get("raw_data"))
    answer = Answer(
        body=body,
        source_id=source_id,
        at=at,
        model=str(raw.get("model") or model),
        usage=chat_usage(raw.get("usage") or message.get("usage")),
        response_id=str(raw["id"]) if raw.get("id") else None,
        cost_microusd=microusd_of(message.get("cost")),
    )
    turns.answer(answer, call_ids(body))


def _add(turns: TurnBuilder, body: dict[str, Any], source_id: str) -> None:
    message = ImportedMessage(body=body, source_id=source_id)
    if body["role"] == "assistant":
        turns.answer(Answer(body=body, source_id=source_id), call_ids(body))
    elif body["role"] == "tool":
        turns.result(str(body.get("tool_call_id") or ""), message)
    else:
        turns.add(message)


def _damage(log: LogFile, number: int, error: Exception) -> Damage:
    reason = f"conversation {number}: {type(error).__name__} {error}"
    return Damage(file=log.name, line=number, reason=reason)
