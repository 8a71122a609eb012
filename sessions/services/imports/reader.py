"""Read logs: recognize their format, and read and prepare their sessions, in several processes."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from compaction.errors import FormatError
from compaction.jsontext import depth_exceeds, flattened
from importers.base import Damage, ImportedSession, ImportedTurn, LogFile
from importers.jsonlines import forget
from importers.reading import LogSource, UnreadableLogError
from importers.registry import IMPORTERS, log_items, recognize
from importers.unrecognized import unrecognized_reason
from redaction import Redaction, redact
from sessions.services.imports.prepare import PreparedSession, session_prepare, too_deep
from sessions.services.processes import process_pool

#: Part of every digest. Increase it when an importer reads more from a log than before, so that imported
#: logs are read again.
_VERSION = b"7"

#: Starting a process takes about as long as reading this many bytes of compressed logs.
_BYTES_PER_PROCESS = 4 << 20

#: Logs that each process may read ahead of the process that stores them; more would only use memory.
_READ_AHEAD = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLog:
    """The content of one log. Parent sessions precede their children.

    There are no sessions if the log could not be read (`error` is the reason), if its digest is `known`, or
    if no importer recognizes it (`unrecognized` is the reason).
    """

    name: str
    files: int
    size: int = 0
    digest: bytes = b""
    known: bool = False
    error: str = ""
    unrecognized: str = ""
    importer: str = ""
    sessions: Sequence[PreparedSession] = ()
    damages: Sequence[Damage] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RawLog:
    """The sessions of a log as its importer reads them, parents first, and its unreadable parts.

    Messages are nested at most `MAX_DEPTH` levels deep.
    """

    importer: str
    sessions: list[ImportedSession]
    damages: list[Damage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """How logs are read.

    `known` are the digests of logs that are skipped. `format` is the name of the importer to use for all
    logs; None recognizes each log by its content.
    """

    redaction: Redaction
    known: Collection[bytes] = frozenset()
    format: str | None = None

    def read(self, source: LogSource) -> ReadLog:
        """Read a log from disk."""
        try:
            # No variable refers to the file, so its bytes are freed before the sessions are prepared.
            log, raw = self._unprepared(source.read(), files=len(source.files))
        except UnreadableLogError as error:
            return ReadLog(name=source.name, files=len(source.files), error=str(error))
        return self._prepared(log, raw) if raw else log

    def read_file(self, file: LogFile) -> ReadLog:
        """Read a log that is already in memory."""
        log, raw = self._unprepared(file, files=1)
        return self._prepared(log, raw) if raw else log

    def _unprepared(self, file: LogFile, *, files: int) -> tuple[ReadLog, RawLog | None]:
        """Return a log without its sessions, and the sessions to prepare, if any."""
        log = ReadLog(name=file.name, files=files, size=len(file.data), digest=self.digest(file))
        if log.digest in self.known:
            return replace(log, known=True), None
        raw = self.read_raw(file)
        if raw is None:
            return replace(log, unrecognized=unrecognized_reason(file)), None
        return log, raw

    def read_raw(self, log: LogFile) -> RawLog | None:
        """Read the sessions of a log without preparing them. None if no importer recognizes it."""
        try:
            return self._read_raw(log)
        finally:
            forget()

    def _read_raw(self, log: LogFile) -> RawLog | None:
        importer = IMPORTERS[self.format] if self.format else recognize(log)
        if importer is None:
            return None
        sessions, damages = [], []
        for item in log_items(importer, log):
            if isinstance(item, Damage):
                reason, _ = redact(item.reason, redaction=self.redaction)
                damages.append(replace(item, reason=reason))
            else:
                named = _without_secrets(item, self.redaction)
                try:
                    flat = _flattened(named)
                except RecursionError:
                    damages.append(malformed(log.name, named, too_deep()))
                else:
                    sessions.append(replace(flat, started_at=_started_at(item, log)))
        sessions.sort(key=lambda session: bool(session.parent_external_id))
        return RawLog(importer=importer.name, sessions=sessions, damages=damages)

    def digest(self, log: LogFile) -> bytes:
        """Return a hash of the log's content and its file name, which is the default id of its session."""
        head = b"\0".join((_VERSION, (self.format or "").encode(), log.stem.encode("utf-8", "replace")))
        digest = hashlib.blake2b(head + b"\0", digest_size=32)
        digest.update(log.data)
        return digest.digest()

    def _prepared(self, log: ReadLog, raw: RawLog) -> ReadLog:
        sessions, damages = [], raw.damages
        for item in raw.sessions:
            try:
                sessions.append(session_prepare(item, redaction=self.redaction))
            except FormatError as error:
                damages.append(malformed(log.name, item, error))
        return replace(log, importer=raw.importer, sessions=sessions, damages=damages)


def _without_secrets(session: ImportedSession, redaction: Redaction) -> ImportedSession:
    """Redact names: an id may be the name of a file, and models come from the log."""
    models = {turn.model for turn in session.turns}
    names = [session.external_id, session.parent_external_id or "", session.agent, session.model, *models]
    redacted, found = redact(names, redaction=redaction)
    if not found:
        return session
    new = dict(zip(names, redacted, strict=True))
    return replace(
        session,
        external_id=new[session.external_id],
        parent_external_id=session.parent_external_id and new[session.parent_external_id],
        agent=new[session.agent],
        model=new[session.model],
        turns=[replace(turn, model=new[turn.model]) for turn in session.turns],
    )


def _flattened(session: ImportedSession) -> ImportedSession:
    """Replace parts of messages that are nested too deeply by their JSON text, so that nothing is lost.

    Raises `RecursionError` if a part is nested even more deeply.
    """
    bodies = (message.body for turn in session.turns for message in turn.messages)
    if not any(map(depth_exceeds, map(dict, bodies))):
        return session
    return replace(session, turns=[_flattened_turn(turn) for turn in session.turns])


def _flattened_turn(turn: ImportedTurn) -> ImportedTurn:
    flat = [replace(each, body=cast(dict[str, Any], flattened(dict(each.body)))) for each in turn.messages]
    return replace(turn, messages=flat)


def _started_at(session: ImportedSession, log: LogFile) -> datetime | None:
    """Return when a session began: as logged, else its first message, else the date of the file."""
    messages = (message.at for turn in session.turns for message in turn.messages)
    times = (turn.at for turn in session.turns)
    return session.started_at or next(filter(None, (*messages, *times)), None) or log.modified


def read_logs(sources: Sequence[LogSource], reader: Reader, *, jobs: int) -> Iterator[ReadLog]:
    """Return the content of each log, in order, read by up to `jobs` processes."""
    jobs = min(jobs, len(sources), 1 + sum(source.size for source in sources) // _BYTES_PER_PROCESS)
    if jobs <= 1:
        yield from map(reader.read, sources)
        return
    with process_pool(jobs, _begin, reader) as pool:
        yield from _in_order(pool, sources, ahead=jobs * _READ_AHEAD)


def _in_order(pool: ProcessPoolExecutor, sources: Sequence[LogSource], *, ahead: int) -> Iterator[ReadLog]:
    waiting: deque[Future[ReadLog]] = deque()
    try:
        for source in sources:
            waiting.append(pool.submit(_read, source))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


_process_read: Callable[[LogSource], ReadLog]


def _begin(reader: Reader) -> None:
    global _process_read
    _process_read = reader.read


def _read(source: LogSource) -> ReadLog:
    return _process_read(source)


def malformed(name: str, session: ImportedSession, error: FormatError) -> Damage:
    """Return the report of a session that cannot be imported."""
    return Damage(file=name, line=1, reason=f"session {session.external_id} was skipped: {error}")
