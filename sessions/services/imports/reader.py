"""Reading many logs: each is recognised, read and prepared, in other processes where that pays off."""

from __future__ import annotations

import hashlib
import multiprocessing
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from compaction.errors import FormatError
from importers.base import Damage, ImportedSession, Importer, LogFile
from importers.reading import LogSource, UnreadableLogError
from importers.registry import importer_named, recognise
from redaction import Redaction
from sessions.services.imports.prepare import PreparedSession, session_prepare

#: Part of every digest. Raised where an importer comes to tell more of a log than before, so that logs
#: which were imported by then are read again.
_VERSION = b"1"

#: Starting a process takes about as long as reading so many bytes of packed logs.
_WORTH_A_PROCESS = 4 << 20

#: How many logs each process may be ahead of who stores them: more would only fill the memory.
_AHEAD = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLog:
    """What came of one log. Where `error` says why it could not be read, or its digest is `known`, or no
    importer knows it, it has no sessions. Parents stand before their children."""

    name: str
    files: int
    size: int = 0
    digest: bytes = b""
    known: bool = False
    error: str = ""
    importer: str = ""
    sessions: Sequence[PreparedSession] = ()
    damages: Sequence[Damage] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """How logs are read. `key` takes their secrets out. `known`: digests of logs that need no reading.
    `format` is the importer's name where the logs are not to be recognised by their content."""

    key: Redaction
    known: Collection[bytes] = frozenset()
    format: str | None = None

    def read(self, source: LogSource) -> ReadLog:
        try:
            log = source.read()
        except UnreadableLogError as error:
            return ReadLog(name=source.name, files=len(source.files), error=str(error))
        return self.read_file(log, files=len(source.files))

    def read_file(self, log: LogFile, *, files: int = 1) -> ReadLog:
        """The same of a log whose bytes are at hand."""
        told = partial(ReadLog, name=log.name, files=files, size=len(log.data))
        digest = self._digest(log)
        if digest in self.known:
            return told(digest=digest, known=True)
        importer = importer_named(self.format) if self.format else recognise(log)
        if importer is None:
            return told(digest=digest)
        sessions, damages = self._prepared(importer, log)
        return told(digest=digest, importer=importer.name, sessions=sessions, damages=damages)

    def _digest(self, log: LogFile) -> bytes:
        """The name of this state of the log. A log without a session id is told by its file's name."""
        head = b"\0".join((_VERSION, (self.format or "").encode(), log.stem.encode("utf-8", "replace")))
        digest = hashlib.blake2b(head + b"\0", digest_size=32)
        digest.update(log.data)
        return digest.digest()

    def _prepared(self, importer: Importer, log: LogFile) -> tuple[list[PreparedSession], list[Damage]]:
        sessions, damages = [], []
        for item in _told(importer, log):
            if isinstance(item, Damage):
                damages.append(item)
                continue
            try:
                sessions.append(session_prepare(item, key=self.key))
            except FormatError as error:
                damages.append(_malformed(log, item, error))
        sessions.sort(key=lambda session: bool(session.facts.parent_external_id))
        return sessions, damages


def _told(importer: Importer, log: LogFile) -> Iterator[ImportedSession | Damage]:
    """What the importer reads. A log that is none of its format ends in a damage, not in a fault."""
    try:
        yield from importer.read(log)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        reason = f"it cannot be read on as {importer.name}: {type(error).__name__} {error}"
        yield Damage(file=log.name, line=1, reason=reason)


def read_logs(sources: Sequence[LogSource], reader: Reader, *, jobs: int) -> Iterator[ReadLog]:
    """What came of each log, in their order, read by up to `jobs` processes."""
    jobs = min(jobs, len(sources), 1 + sum(source.size for source in sources) // _WORTH_A_PROCESS)
    if jobs <= 1:
        yield from map(reader.read, sources)
        return
    # A fork would copy the database connections of this process, and threads in the middle of their work.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(reader,)) as pool:
        yield from _in_order(pool, sources, ahead=jobs * _AHEAD)


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


def _malformed(log: LogFile, session: ImportedSession, error: FormatError) -> Damage:
    return Damage(file=log.name, line=1, reason=f"session {session.external_id} is left out: {error}")
