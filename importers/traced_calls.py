"""Read the model calls in exports of tracing services as sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from .anthropic_messages import AnthropicSeries
from .base import Damage, ImportedSession, LogFile
from .calls import LoggedCall, conversation_id
from .jsonlines import MALFORMED
from .traced_messages import Request
from .values import title_of

Call = TypeVar("Call")


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


def traced_sessions(
    log: LogFile,
    calls: Mapping[str, Iterable[Call]],
    add: Callable[[TracedSession, Call], None],
    place: Callable[[Call], tuple[int, str]],
) -> Iterator[ImportedSession | Damage]:
    """Yield the sessions with these calls, by name, and the calls that `add` cannot read.

    `place` returns the line of a call and what damages name it.
    """
    for name, found in calls.items():
        session = TracedSession(name)
        for call in found:
            try:
                add(session, call)
            except MALFORMED as error:
                line, label = place(call)
                yield Damage(file=log.name, line=line, reason=f"{label}: {type(error).__name__}: {error}")
        yield from session.conversations()


def latency_ms(start: datetime | None, end: datetime | None) -> int | None:
    """Return the milliseconds between two times, None if one is missing or they are not in order."""
    return int((end - start).total_seconds() * 1_000) if start and end and end >= start else None
