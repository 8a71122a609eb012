"""OpenHands' event streams: a list of actions and observations, or the `history` of a run.

An action of the agent becomes an assistant message with a tool call, and the observation that it causes
becomes the call's result. Newer events name the tool call and the model's response; in older ones an
observation follows its action.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.calls import conversation_id
from importers.chat import call_ids, chat_usage, tool_call
from importers.jsonlines import Record, first_value, read_records, take_messages, values
from importers.turns import Answer, TurnBuilder
from importers.values import mapping_of, microusd_of, text_of, time_of, title_of

#: OpenHands' tool names by action.
_TOOLS = {"run": "execute_bash", "run_ipython": "execute_ipython_cell", "edit": "str_replace_editor"}

#: Events that the model never sees.
_INTERNAL = {"change_agent_state", "agent_state_changed", "null", "recall", "system", "loop_recovery"}

#: Action fields that are not arguments of the tool.
_NOT_ARGUMENTS = {
    "action", "thought", "id", "source", "timestamp", "message", "cause", "tool_call_metadata", "llm_metrics",
    "is_confirmed", "confirmation_state", "security_risk", "action_risk", "keep_prompt", "hidden", "blocking",
    "kernel_init_code", "is_input", "is_static", "cwd", "include_extra",
}  # fmt: skip


class OpenHandsEventsImporter:
    """Reads OpenHands' event streams."""

    name = "openhands-events"
    label = "OpenHands event stream (JSON or JSONL)"

    def recognizes(self, log: LogFile) -> bool:
        events = _events(first_value(log))
        return bool(events) and _is_event(events[0])

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        runs: list[_Run] = []
        damages: list[Damage] = []

        def take(record: Record) -> None:
            if _is_event(record.value):  # one event per file, or per line
                if not runs:
                    runs.append(_Run({}))
                runs[-1].take(record.value)
            else:
                run = _Run(mapping_of(record.value))
                runs.append(run)
                damages.extend(take_messages(log, _events(record.value), lambda _, event: run.take(event)))

        yield from read_records(log, values(log), take)
        yield from damages
        for number, run in enumerate(runs, start=1):
            yield run.session(log, number if len(runs) > 1 else 0)


class _Run:
    """One run of the agent. `facts` is the object that contains its history, if there is one."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts
        self._turns = TurnBuilder()
        self._answers: list[Answer] = []
        self._opening = ""
        self._system: Any = None
        self._tools: Any = None
        self._bodies: list[dict[str, Any]] = []
        self._count = 0
        self._call_of_event: dict[Any, str] = {}
        self._last_call = ""

    def take(self, event: Mapping[str, Any]) -> None:
        self._count += 1
        if "observation" in event:
            self._observation(event)
        elif event.get("action") == "system":
            arguments = _arguments(event)
            self._system, self._tools = arguments.get("content"), arguments.get("tools")
        elif event.get("action") == "condensation":
            self._turns.compacted(ClientCompaction(trigger="auto"))
        elif event.get("action") not in _INTERNAL:
            self._action(event)

    def _action(self, event: Mapping[str, Any]) -> None:
        arguments = _arguments(event)
        is_message = event["action"] == "message"
        is_user = event.get("source") == "user" or (is_message and not self._bodies)
        if is_message and is_user:
            body = {"role": "user", "content": str(arguments.get("content") or "")}
            self._opening = self._opening or body["content"]
            self._bodies.append(body)
            self._turns.add(ImportedMessage(body=body, source_id=self._source_id(event), at=_at(event)))
            return
        self._answer(event, arguments)

    def _answer(self, event: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        call = mapping_of(event.get("tool_call_metadata"))
        response = mapping_of(call.get("model_response"))
        response_id = str(response.get("id") or "")
        calls = [] if event["action"] in ("message", "finish") else [self._call(event, arguments, call)]
        if response_id and self._answers and self._answers[-1].response_id == response_id:
            latest = self._answers[-1]  # parallel calls of one response are separate events
            latest.body.setdefault("tool_calls", []).extend(calls)
            self._turns.called(latest, [made["id"] for made in calls])
            return
        body: dict[str, Any] = {"role": "assistant", "content": _words(arguments) or (None if calls else "")}
        if calls:
            body["tool_calls"] = calls
        answer = Answer(
            body=body,
            source_id=self._source_id(event),
            at=_at(event),
            model=str(response.get("model") or ""),
            usage=chat_usage(response.get("usage")),
            response_id=response_id or None,
        )
        self._answers.append(answer)
        self._bodies.append(body)
        self._turns.answer(answer, call_ids(body))

    def _call(
        self, event: Mapping[str, Any], arguments: Mapping[str, Any], call: Mapping[str, Any]
    ) -> dict[str, Any]:
        id = str(call.get("tool_call_id") or f"call-{self._count}")
        self._last_call = self._call_of_event[event.get("id")] = id
        action = str(event["action"])
        name = str(call.get("function_name") or _TOOLS.get(action, action))
        given = {key: value for key, value in arguments.items() if key not in _NOT_ARGUMENTS}
        return tool_call({"id": id, "name": name, "arguments": given})

    def _observation(self, event: Mapping[str, Any]) -> None:
        if event["observation"] in _INTERNAL:
            return
        call = mapping_of(event.get("tool_call_metadata")).get("tool_call_id")
        id = str(call or self._call_of_event.get(event.get("cause")) or self._last_call)
        body = {"role": "tool", "tool_call_id": id, "content": _output(event)}
        self._turns.result(id, ImportedMessage(body=body, source_id=self._source_id(event), at=_at(event)))

    def _source_id(self, event: Mapping[str, Any]) -> str:
        return f"event-{event.get('id', self._count)}"

    def session(self, log: LogFile, number: int) -> ImportedSession:
        costs = mapping_of(self._facts.get("metrics")).get("costs")
        if isinstance(costs, list) and len(costs) == len(self._answers):
            for answer, cost in zip(self._answers, costs, strict=True):
                answer.cost_microusd = microusd_of(cost.get("cost") if isinstance(cost, dict) else cost)
        turns = self._turns.turns()
        name = str(self._facts.get("instance_id") or "") or _log_name(log)
        if number:
            name = f"{name}-{number}"
        return ImportedSession(
            external_id=f"openhands-{name}-{conversation_id(self._bodies)}",
            format="openai",
            agent="openhands",
            turns=turns,
            model=next((turn.model for turn in turns if turn.model), ""),
            title=title_of(self._opening),
            started_at=next((turn.at for turn in turns if turn.at), None),
            system=self._system,
            tools=self._tools,
        )


def _events(value: Any) -> list[Mapping[str, Any]]:
    """Return the events of a value: its `history`, a list (of pairs, in old runs), or the value itself."""
    if isinstance(value, dict) and _is_event(value):
        return [value]
    history = value.get("history") if isinstance(value, dict) else value
    if not isinstance(history, list):
        return []
    return [event for item in history for event in (item if isinstance(item, list) else [item])]


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and ("action" in value or "observation" in value) and "role" not in value


def _arguments(event: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping_of(event.get("args")) or event


def _words(arguments: Mapping[str, Any]) -> str:
    """Return the text that the agent wrote with an action."""
    outputs = mapping_of(arguments.get("outputs"))
    for text in (
        arguments.get("thought"),
        arguments.get("content"),
        arguments.get("final_thought"),
        outputs.get("content"),
    ):
        if isinstance(text, str) and text:
            return text
    return ""


def _output(event: Mapping[str, Any]) -> str:
    """Return an observation as text. Commands end with their exit code, as in OpenHands' prompts."""
    content = event.get("content")
    text = (
        content if isinstance(content, str) else text_of(content) or json.dumps(content, ensure_ascii=False)
    )
    extras = mapping_of(event.get("extras"))
    code = event.get(
        "exit_code", mapping_of(extras.get("metadata")).get("exit_code", extras.get("exit_code"))
    )
    if event["observation"] == "run" and isinstance(code, int) and code >= 0:
        return f"{text}\n[Command finished with exit code {code}]"
    return text


def _at(event: Mapping[str, Any]) -> Any:
    return time_of(event.get("timestamp"))


def _log_name(log: LogFile) -> str:
    """Return the name of a log. A folder `events` has the name of its parent folder."""
    folder = log.path.parent.name if log.path.name == "events" else ""
    return folder or log.stem
