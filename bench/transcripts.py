"""Recorded sessions of a folder, read by the importers of contextapp."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from compaction.adapters.tiktoken_counter import TiktokenCounter
from compaction.dialects import parse
from compaction.messages import Message, Role
from importers.base import Damage, ImportedSession
from importers.reading import UnreadableLogError, log_sources
from importers.registry import log_items, recognize


@dataclass(frozen=True)
class Transcript:
    """A whole session, including what the client sent before its own compactions."""

    name: str
    format: str
    messages: tuple[Message, ...]

    @cached_property
    def tokens(self) -> int:
        return sum(message.tokens for message in self.messages)


def transcripts(folder: Path) -> Iterator[Transcript]:
    """Yield every session of every log below the folder. A session in two files is yielded once."""
    return (transcript for _, transcript in imported_transcripts(folder))


def imported_transcripts(folder: Path) -> Iterator[tuple[ImportedSession, Transcript]]:
    """Yield the sessions of `transcripts` with what the importer read."""
    known: set[tuple[str, ...]] = set()
    for source in log_sources([folder]):
        try:
            log = source.read()
        except UnreadableLogError:
            continue
        importer = recognize(log)
        for session in log_items(importer, log) if importer else ():
            if isinstance(session, Damage):
                continue
            transcript = _transcript(session, log.stem)
            beginning = tuple(message.text for message in transcript.messages[:8])
            if beginning not in known:
                known.add(beginning)
                yield session, transcript


def _transcript(session: ImportedSession, name: str) -> Transcript:
    bodies = [message.body for turn in session.turns for message in turn.messages]
    messages = parse(bodies, format=session.format, counter=TiktokenCounter())
    turn, numbered = 0, []
    for message in messages:
        numbered.append(replace(message, turn=turn))
        turn += message.role is Role.ASSISTANT
    return Transcript(f"{name} {session.external_id}", session.format, tuple(numbered))
