"""OpenHands completion logs: one file per model call, `{messages, response, kwargs, timestamp, cost}`.

All calls of an agent are in one folder, which is read as one log with one call per line. A single file is a
log of one call, whose earlier answers have no usage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from importers.base import Damage, ImportedSession, LogFile
from importers.calls import CallSeries, conversation_id, logged_call
from importers.jsonlines import first_value, read_records, values
from importers.values import mapping_of, title_of


class OpenHandsImporter:
    """Reads OpenHands completion logs."""

    name = "openhands"
    label = "OpenHands completion log (JSON, one file per call, or a folder of them)"

    def recognizes(self, log: LogFile) -> bool:
        return _is_call(first_value(log))

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        runs: dict[str, list[_Conversation]] = {}  # by the conversation's opening
        yield from read_records(log, values(log), lambda record: _take(runs, record.value))
        for conversation in chain.from_iterable(runs.values()):
            yield conversation.session(log)


@dataclass(slots=True)
class _Conversation:
    """The calls of one agent. A delegate has a separate task; a second run repeats the same task."""

    key: str
    tools: Any
    series: CallSeries = field(default_factory=CallSeries)

    def session(self, log: LogFile) -> ImportedSession:
        name = log.name.rstrip("/").rsplit("/", 1)[-1]  # the suffix distinguishes a file from its folder
        return ImportedSession(
            external_id=f"openhands-{name}-{self.key}",
            format="openai",
            agent="openhands",
            turns=self.series.turns(),
            model=self.series.model,
            title=title_of(self.series.first_words),
            started_at=self.series.started_at,
            tools=self.tools,
        )


def _take(runs: dict[str, list[_Conversation]], record: Mapping[str, Any]) -> None:
    call = logged_call(record)
    id = conversation_id(call.messages)
    alike = runs.setdefault(id, [])
    if not alike or alike[-1].series.restarts(call.messages):
        key = f"{id}-run{len(alike) + 1}" if alike else id
        alike.append(_Conversation(key, mapping_of(record.get("kwargs")).get("tools")))
    alike[-1].series.add(call)


def _is_call(record: Any) -> bool:
    response = record.get("response") if isinstance(record, Mapping) else None
    return (
        isinstance(response, Mapping)
        and isinstance(record.get("messages"), list)
        and "choices" in response
        and ("kwargs" in record or "args" in record)
    )
