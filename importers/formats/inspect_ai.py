"""Logs of Inspect, the evaluation framework of the UK AI Security Institute.

A log is a zip archive (`.eval`) with one JSON file per sample, or one JSON document with all samples. Each
sample is a session. Its events contain the request and the answer of each model call. The calls of an agent
that another one started are in a separate span: a sub-agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any

import orjson

from importers.archives import MAGIC, entries, entry_data, is_archive
from importers.base import Damage, ImportedSession, LogFile
from importers.calls import LoggedCall
from importers.formats.anthropic_messages import AnthropicSeries
from importers.formats.inspect_messages import Attachments, bodies_of, system_of, tools_of, usage_of_call
from importers.jsonlines import MALFORMED, document, document_damages, list_in
from importers.values import id_of, list_of, mapping_of, milliseconds_of, time_of, title_of

#: Files in an archive, of which the first two describe the evaluation.
_FACTS = ("header.json", "_journal/start.json")
_SAMPLES = "samples/"
_FIRST_ENTRIES = (*_FACTS, _SAMPLES, "_journal/", "summaries.json", "reductions.json")

#: A document begins with the facts of the evaluation.
_FIRST_BYTES = 4_096

_SCORERS = ("scorer", "scorers")


class InspectImporter:
    """Reads evaluation logs of Inspect."""

    name = "inspect"
    label = "Inspect evaluation log (.eval or JSON)"

    def recognizes(self, log: LogFile) -> bool:
        if is_archive(log.data, *_FIRST_ENTRIES):
            return True
        if b'"eval"' not in log.data[:_FIRST_BYTES]:
            return False
        value = document(log)
        return (
            isinstance(value, dict)
            and {"version", "status", "eval"} <= value.keys()
            and "run_id" in mapping_of(value["eval"])
        )

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        if log.data.startswith(MAGIC):
            yield from _read_archive(log)
            return
        value = document(log)
        facts = mapping_of(mapping_of(value).get("eval"))
        yield from document_damages(log)
        try:
            samples = list_in(value, "samples") if "samples" in value else []
        except MALFORMED as error:
            reason = f"not a record of this format: {type(error).__name__}: {error}"
            yield Damage(file=log.name, line=1, reason=reason)
            return
        for number, sample in enumerate(samples, start=1):
            yield from _read_sample(log, f"sample {number}", facts, sample)


def _read_archive(log: LogFile) -> Iterator[ImportedSession | Damage]:
    """Yield the sessions of an archive. Only one sample is in memory at a time."""
    found, is_complete = entries(log.data)
    if not is_complete:
        reason = "the archive is truncated or damaged; its complete samples were read"
        yield Damage(file=log.name, line=1, reason=reason)
    by_name = {entry.name: entry for entry in found}
    facts: Mapping[str, Any] = {}
    for name in _FACTS:
        if name in by_name and not facts:
            try:
                facts = mapping_of(mapping_of(orjson.loads(entry_data(log.data, by_name[name]))).get("eval"))
            except ValueError as error:
                yield Damage(file=log.name, line=1, reason=f"{name}: {error}")
    for entry in found:
        if entry.name.startswith(_SAMPLES):
            try:
                sample = orjson.loads(entry_data(log.data, entry))
            except ValueError as error:
                yield Damage(file=log.name, line=1, reason=f"{entry.name}: {error}")
                continue
            yield from _read_sample(log, entry.name, facts, sample)


def _read_sample(
    log: LogFile, name: str, facts: Mapping[str, Any], sample: Any
) -> Iterator[ImportedSession | Damage]:
    try:
        reading = _Sample(sample)
    except MALFORMED as error:
        yield Damage(file=log.name, line=1, reason=f"{name}: {type(error).__name__}: {error}")
        return
    for reason in reading.errors:
        yield Damage(file=log.name, line=1, reason=f"{name}: {reason}")
    yield from reading.sessions(log, facts)


class _Conversation:
    """The calls of one agent."""

    def __init__(self, parent: str, name: str) -> None:
        self.parent, self.name = parent, name
        self.series = AnthropicSeries()
        self.system: str | None = None
        self.tools: list[dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class _Request:
    """Messages and system prompt of a request, and the indexes of the messages in the sample's list."""

    indexes: list[int] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    system: str | None = None

    def is_prefix_of(self, indexes: list[int], pool: list[Any]) -> bool:
        """Return whether another request begins with this one, and does not extend its last message."""
        count = len(self.indexes)
        if not count or indexes[:count] != self.indexes:
            return False
        around = indexes[count - 1 : count + 1]
        return any(pool[index]["role"] != "tool" for index in around) or len(around) == 1


class _Sample:
    """The model calls of one sample, by the agent's span."""

    def __init__(self, sample: Mapping[str, Any]) -> None:
        self._sample = sample
        self._attachments = Attachments(mapping_of(sample.get("attachments")))
        pool = mapping_of(sample.get("events_data"))
        self._pool = [self._attachments.resolved(each) for each in list_of(pool.get("messages"))]
        self._bodies: dict[tuple[int, ...], list[dict[str, Any]]] = {}  #: by their places in the pool
        self._requests: dict[tuple[str, bool], _Request] = {}  #: the last one of each agent
        self._spans: dict[str, Mapping[str, Any]] = {}
        self._conversations: dict[str, _Conversation] = {}
        self._scoring = False
        self.errors: list[str] = []
        self._read(list_of(sample.get("events")), "")
        self._add_rest(list_of(sample.get("messages")))

    def sessions(self, log: LogFile, facts: Mapping[str, Any]) -> Iterator[ImportedSession]:
        """Yield the session of the sample, then its sub-agents."""
        sample = self._sample
        number = f"{sample.get('id')}-{sample.get('epoch', 1)}"
        session_id = str(
            sample.get("uuid") or f"{facts.get('eval_id') or facts.get('run_id') or log.stem}-{number}"
        )
        scores = mapping_of(sample.get("scores"))
        metadata = {
            "task": facts.get("task"),
            "sample_id": sample.get("id"),
            "epoch": sample.get("epoch"),
            **{f"score_{name}": mapping_of(score).get("value") for name, score in scores.items()},
        }
        main = next(iter(self._conversations), "")
        for key, found in self._conversations.items():
            is_main = key == main
            parent = found.parent if found.parent in self._conversations and found.parent != key else main
            yield ImportedSession(
                external_id=session_id if is_main else f"{session_id}:agent-{key}",
                parent_external_id=None if is_main else _name(session_id, parent, main),
                format="anthropic",
                agent="inspect",
                turns=found.series.turns(),
                model=found.series.model or _short(str(facts.get("model") or "")),
                title=title_of(found.series.first_words) or title_of(found.name),
                started_at=time_of(sample.get("started_at")) if is_main else None,
                system=found.system,
                tools=found.tools,
                metadata={name: value for name, value in metadata.items() if value is not None},
            )

    def _read(self, events: Sequence[Any], agent: str) -> None:
        """Read the calls in a list of events. In older versions, events of a tool contain others."""
        for event in events:
            try:
                self._take(event, agent)
            except MALFORMED as error:
                self.errors.append(f"event {type(error).__name__}: {error}")

    def _take(self, event: Mapping[str, Any], agent: str) -> None:
        match event.get("event"):
            case "span_begin":
                self._spans[str(event["id"])] = event
            case "step" if event.get("type") == "scorer":
                self._scoring = event.get("action") == "begin"
            case "tool" | "subtask" if event.get("events"):
                self._read(list_of(event["events"]), f"{event.get('id') or event.get('name')}")
            case "model":
                self._take_call(event, agent)

    def _take_call(self, event: Mapping[str, Any], agent: str) -> None:
        spans = list(self._enclosing(event.get("span_id")))
        choices = list_of(mapping_of(event.get("output")).get("choices"))
        if self._scoring or not choices or any(span.get("type") in _SCORERS for span in spans):
            return
        agents = [str(span["id"]) for span in spans if span.get("type") == "agent"]
        key, parent = (agents[0] if agents else agent), (agents[1] if len(agents) > 1 else "")
        is_anthropic = str(event.get("model") or "").startswith("anthropic/")
        request = self._request(event, key, is_anthropic=is_anthropic)
        output = event["output"]
        call = LoggedCall(
            messages=request.bodies,
            answer=next(iter(self._answer(choices[0], is_anthropic=is_anthropic)), None),
            model=str(output.get("model") or "") or _short(str(event.get("model") or "")),
            usage=None if event.get("cache") == "read" else usage_of_call(mapping_of(output.get("usage"))),
            response_id=_response_id(event),
            at=time_of(event.get("completed") or event.get("timestamp")),
            duration_ms=milliseconds_of(output.get("time"), unit=1_000),
        )
        if key not in self._conversations:
            name = str(mapping_of(self._spans.get(key)).get("name") or "")
            self._conversations[key] = _Conversation(parent, name)
        found = self._conversations[key]
        found.series.add(call)
        found.system = request.system or found.system
        found.tools = tools_of(list_of(self._attachments.resolved(event.get("tools")))) or found.tools

    def _request(self, event: Mapping[str, Any], agent: str, *, is_anthropic: bool) -> _Request:
        """Return the request of a call, which may be ranges of a list of all messages."""
        refs = event.get("input_refs")
        if not refs:
            messages = list_of(self._attachments.resolved(event["input"]))
            return _Request([], bodies_of(messages, is_anthropic=is_anthropic), system_of(messages))
        # Most requests continue the last one. Reading all of it again would take quadratic time.
        pool, last = self._pool, self._requests.get((agent, is_anthropic), _Request())
        ranges = (range(max(start, 0), min(end, len(pool))) for start, end in refs)
        indexes = list(chain.from_iterable(ranges))
        if not last.is_prefix_of(indexes, pool):
            last = _Request()
        new = indexes[len(last.indexes) :]
        bodies = list(last.bodies)
        for _, group in groupby(new, lambda index: -1 if pool[index]["role"] == "tool" else index):
            key = (is_anthropic, *group)
            if key not in self._bodies:
                self._bodies[key] = bodies_of([pool[index] for index in key[1:]], is_anthropic=is_anthropic)
            bodies += self._bodies[key]
        system = system_of(pool[index] for index in new if pool[index]["role"] == "system")
        found = _Request(indexes, bodies, "\n\n".join(filter(None, (last.system, system))) or None)
        self._requests[agent, is_anthropic] = found
        return found

    def _answer(self, choice: Mapping[str, Any], *, is_anthropic: bool) -> list[dict[str, Any]]:
        return bodies_of([self._attachments.resolved(choice["message"])], is_anthropic=is_anthropic)

    def _enclosing(self, span: Any) -> Iterator[Mapping[str, Any]]:
        """Yield the spans around an event, innermost first."""
        seen: set[str] = set()
        while isinstance(span, str) and span in self._spans and span not in seen:
            seen.add(span)
            yield self._spans[span]
            span = self._spans[span].get("parent_id")

    def _add_rest(self, logged: list[Any]) -> None:
        """Add the sample's messages if there are no calls, or those after the last one."""
        messages = [self._attachments.resolved(message) for message in logged]
        bodies = bodies_of(messages, is_anthropic=False)
        found = next(iter(self._conversations.values()), None)
        if found is None:
            found = self._conversations[""] = _Conversation("", "")
        if bodies and (not found.series.turns() or found.series.extends(bodies)):
            found.series.add(LoggedCall(messages=bodies))
            found.system = found.system or system_of(messages)


def _name(session_id: str, key: str, main: str) -> str:
    return session_id if key == main else f"{session_id}:agent-{key}"


def _short(model: str) -> str:
    """Return the name of a model without its provider."""
    return model.rpartition("/")[2]


def _response_id(event: Mapping[str, Any]) -> str | None:
    response = mapping_of(mapping_of(event.get("call")).get("response"))
    return id_of(event["output"].get("response_id") or response.get("id"))
