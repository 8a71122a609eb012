"""Read the model calls in exports of tracing services as sessions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from importers.base import Damage, ImportedSession, LogFile
from importers.calls import LoggedCall, conversation_id
from importers.formats.anthropic_messages import AnthropicSeries
from importers.formats.traced_messages import Request
from importers.jsonlines import MALFORMED, Record, read_records, values
from importers.values import time_of, title_of

_LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFacts:
    """What a trace contains besides its calls. `title` is used for conversations without text."""

    title: str = ""
    tags: Sequence[str] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


class _Conversation:
    def __init__(self, key: str, facts: TraceFacts) -> None:
        self.key, self.facts = key, facts
        self.series = AnthropicSeries()
        self.request = Request()


class TracedSession:
    """The calls of one session. A call that does not continue a conversation starts one, of a sub-agent."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._conversations: dict[str, list[_Conversation]] = {}  #: by their opening
        self._all: list[_Conversation] = []
        self._by_call: dict[str, _Conversation] = {}  #: by the ids of the answers' tool calls

    def add(self, request: Request, call: LoggedCall, facts: TraceFacts) -> None:
        """Add the next call. Its messages are those of the request. Raises one of `MALFORMED`."""
        if not request.messages and call.answer is None:
            return
        found = self._conversation(request, facts)
        found.series.add(call)
        found.request.system = request.system or found.request.system
        found.request.tools = request.tools or found.request.tools
        for block in call.answer["content"] if call.answer else ():
            if block["type"] == "tool_use" and block["id"]:
                self._by_call[block["id"]] = found

    def conversations(self) -> Iterator[ImportedSession]:
        """Yield the session, then its sub-agents."""
        for found in self._all:
            facts, is_main = found.facts, found is self._all[0]
            yield ImportedSession(
                external_id=self._name if is_main else f"{self._name}:agent-{found.key}",
                parent_external_id=None if is_main else self._name,
                format="anthropic",
                agent="",
                turns=found.series.turns(),
                model=found.series.model,
                title=title_of(found.series.first_words) or title_of(facts.title),
                started_at=found.series.started_at,
                system="\n\n".join(found.request.system) or None,
                tools=found.request.tools or None,
                tags=facts.tags if is_main else (),
                metadata=facts.metadata,
            )

    def _conversation(self, request: Request, facts: TraceFacts) -> _Conversation:
        """Return the conversation that a request continues.

        It contains tool calls of its answers. Without any, it has the same opening: a program may drop what
        follows. If it consists only of a task that was already answered, it is a second run.
        """
        for message in reversed(request.messages):
            for block in message["content"]:
                if block["type"] == "tool_result" and block["tool_use_id"] in self._by_call:
                    return self._by_call[block["tool_use_id"]]
        key = conversation_id(request.messages)
        alike = self._conversations.setdefault(key, [])
        if not alike or alike[-1].series.restarts(request.messages):
            alike.append(_Conversation(f"{key}-run{len(alike) + 1}" if alike else key, facts))
            self._all.append(alike[-1])
        return alike[-1]


class TracedExport(ABC):
    """The model calls of an export, and the facts of their traces.

    A subclass reads the format of a service, which calls a record `noun`.
    """

    noun: str
    expected: str  #: what an export contains, with its article
    start_key: str  #: the key of the time at which a call began

    def __init__(self) -> None:
        self._calls: dict[str, Record] = {}
        self._parents: set[str] = set()  #: the records that contain model calls
        self._damages: list[tuple[int, str]] = []
        self.traces: dict[str, Mapping[str, Any]] = {}

    @abstractmethod
    def take(self, value: Any, line: int) -> None:
        """Read a value of the log. Raises one of `MALFORMED`."""

    @abstractmethod
    def session_of(self, call: Mapping[str, Any]) -> str:
        """Return the name of the session of a call, or of its trace, or ""."""

    @abstractmethod
    def add_to(self, session: TracedSession, call: Mapping[str, Any]) -> None:
        """Add a call to its session. Raises one of `MALFORMED`."""

    def take_all(self, items: Iterable[Any], line: int) -> None:
        """Read each of the items, and note those that cannot be read."""
        for item in items:
            try:
                self.take(item, line)
            except MALFORMED as error:
                self._damages.append((line, f"not {self.expected}: {type(error).__name__}: {error}"))

    def add_call(self, id: str, call: Mapping[str, Any], line: int, *, parents: Iterable[Any]) -> None:
        """Add a model call; `parents` are the ids of the records that contain it."""
        self._calls[id] = Record(line, call)
        self._parents.update(map(str, parents))

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        """Yield the sessions of the log and its damaged parts."""
        yield from read_records(log, values(log), lambda record: self.take(record.value, record.line))
        yield from (Damage(file=log.name, line=line, reason=reason) for line, reason in self._damages)
        for name, calls in self._sessions().items():
            session = TracedSession(name)
            for id, call in calls:
                try:
                    self.add_to(session, call.value)
                except MALFORMED as error:
                    reason = f"{self.noun} {id}: {type(error).__name__}: {error}"
                    yield Damage(file=log.name, line=call.line, reason=reason)
            yield from session.conversations()

    def _sessions(self) -> Mapping[str, Sequence[tuple[str, Record]]]:
        """Return the calls of each session with their ids, in order, without those that contain others."""
        found: dict[str, list[tuple[str, Record]]] = {}
        for id, call in sorted(self._calls.items(), key=lambda item: (self._start(item[1]), item[0])):
            if id not in self._parents:
                found.setdefault(self.session_of(call.value) or id, []).append((id, call))
        return found

    def _start(self, call: Record) -> datetime:
        return time_of(call.value.get(self.start_key)) or _LATEST


def latency_ms(start: datetime | None, end: datetime | None) -> int | None:
    """Return the milliseconds between two times, None if one is missing or they are not in order."""
    return int((end - start).total_seconds() * 1_000) if start and end and end >= start else None
