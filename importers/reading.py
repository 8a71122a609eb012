"""Find and read logs on disk: files, folders, `.gz` and `.zst`."""

from __future__ import annotations

import gzip
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

import zstandard

from importers.base import LogFile
from importers.databases import database_log, database_sessions, is_database
from importers.folders import (
    copilot_log,
    grouped,
    is_opencode_storage,
    opencode_sessions,
)
from importers.formats.aider import HISTORY_NAME

#: Suffixes of log files. Other files in a folder are ignored; explicitly named files are always read.
LOG_ENDINGS = (".json", ".jsonl", ".ndjson", ".traj", ".eval", HISTORY_NAME)
_PACKED_ENDINGS = (".gz", ".zst")

#: Suffix of logs with one record per line.
_LINES_ENDING = ".jsonl"

#: Suffix of databases with many sessions.
_DATABASE_ENDING = ".db"

#: Suffix of a file beside each log of a sub-agent of Claude Code. It contains no messages.
_DETAILS_ENDING = ".meta.json"

#: Maximum size of a decompressed log, as protection against decompression bombs.
LARGEST_LOG_BYTES = 1 << 30


class UnreadableLogError(Exception):
    """A file cannot be read or decompressed; the message is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSource:
    """The location of a log: one file, or several files of a folder, in order, with one record each.

    A database contains many logs: `session` is the id of one, and `share` its share of the file. `error` is
    the reason if the database, or a folder, cannot be read.
    """

    name: str
    files: Sequence[Path]
    session: str = ""
    share: float = 1.0
    error: str = ""

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return int(sum(map(_size, self.files)) * self.share)

    def read(self) -> LogFile:
        """Return the decompressed log. Raises UnreadableLogError."""
        if self.error:
            raise UnreadableLogError(self.error)
        modified = _modified(self.files)
        if self.session:
            return LogFile(name=self.name, data=self._session(), modified=modified)
        if len(self.files) == 1:
            return LogFile(name=self.name, data=_read(self.files[0]), modified=modified)
        contents = [_record(file) for file in self.files]
        starts = accumulate((data.count(b"\n") + 1 for data in contents), initial=1)
        parts = tuple(zip(starts, map(_plain_name, self.files), strict=False))
        return LogFile(name=self.name, data=b"\n".join(contents), modified=modified, parts=parts)

    def _session(self) -> bytes:
        try:
            return database_log(self.files[0], self.session)
        except (sqlite3.Error, OSError) as error:
            raise UnreadableLogError(f"{self.name}: {error}") from error


def log_sources(paths: Iterable[Path]) -> Iterator[LogSource]:
    """Yield the logs at the paths, recursively, sorted by name."""
    for path in paths:
        if path.is_dir():
            yield from _folder_sources(path)
        else:
            yield from _file_sources(path)


def _folder_sources(folder: Path) -> Iterator[LogSource]:
    try:
        sources, folders = _folder_content(folder)
    except OSError as error:
        name = _printable(folder)
        yield LogSource(name=name, files=(), error=f"{name}: {error.strerror}")
        return
    yield from sources
    for each in folders:
        yield from _folder_sources(each)


def _folder_content(folder: Path) -> tuple[list[LogSource], list[Path]]:
    """Return the logs in a folder, and the folders in it."""
    if is_opencode_storage(folder):
        groups = opencode_sessions(folder)
        return [LogSource(name=_printable(session), files=files) for session, files in groups], []
    if session_log := copilot_log(folder):
        return [LogSource(name=_printable(session_log), files=(session_log,))], []
    entries = sorted(folder.iterdir())
    logs = [entry for entry in entries if entry.is_file() and _is_log(_plain_name(entry))]
    sources = [
        LogSource(name=_printable(path) if path == folder else _plain_name(path), files=files)
        for path, files in grouped(folder, logs)
    ]
    for entry in entries:
        if entry.is_file() and entry.suffix == _DATABASE_ENDING and is_database(entry):
            sources.extend(_database_sources(entry))
    # Links could cause an infinite loop.
    return sources, [entry for entry in entries if entry.is_dir() and not entry.is_symlink()]


def _file_sources(path: Path) -> Iterator[LogSource]:
    """Yield the log in a file, or the logs in a database."""
    found = list(_database_sources(path)) if is_database(path) else []
    yield from found or [LogSource(name=_plain_name(path), files=(path,))]


def _database_sources(path: Path) -> Iterator[LogSource]:
    """Yield the sessions of a client's database, which another program may have locked."""
    name = _printable(path)
    try:
        sessions = database_sessions(path)
    except (sqlite3.Error, OSError) as error:
        yield LogSource(name=name, files=(path,), error=f"{name}: {error}")
        return
    for session in sessions:
        yield LogSource(name=f"{name}/{session}", files=(path,), session=session, share=1 / len(sessions))


def _is_log(name: str) -> bool:
    return name.endswith(LOG_ENDINGS) and not name.endswith(_DETAILS_ENDING)


def _plain_name(path: Path) -> str:
    return _printable(path.with_suffix("") if path.suffix in _PACKED_ENDINGS else path)


def _printable(path: Path) -> str:
    """Return a path as text. Bytes that are not UTF-8 can be neither printed nor stored, and are replaced."""
    return os.fsencode(path).decode("utf-8", "replace")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # deleted meanwhile


def _modified(files: Sequence[Path]) -> datetime | None:
    times = [file.stat().st_mtime for file in files if file.exists()]
    return datetime.fromtimestamp(max(times), UTC) if times else None


def _record(file: Path) -> bytes:
    """Return one of several files, documents on one line. JSON has line breaks only between tokens."""
    data = _read(file)
    is_lines = _plain_name(file).endswith(_LINES_ENDING)
    return data if is_lines else data.replace(b"\r", b" ").replace(b"\n", b" ")


def _read(path: Path) -> bytes:
    try:
        with _opened(path) as log:
            data = log.read(LARGEST_LOG_BYTES + 1)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        reason = str(error).encode("utf-8", "replace").decode()
        raise UnreadableLogError(f"{_printable(path)}: {reason}") from error
    if len(data) > LARGEST_LOG_BYTES:
        raise UnreadableLogError(f"{_printable(path)}: larger than {LARGEST_LOG_BYTES >> 20} MiB")
    return data


def _opened(path: Path) -> BinaryIO | gzip.GzipFile:
    """Open a file, whose content is decompressed while it is read."""
    if path.suffix == ".gz":
        return gzip.open(path)
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().stream_reader(path.open("rb"), read_across_frames=True)
    return path.open("rb")
