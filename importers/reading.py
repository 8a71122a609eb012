"""Find and read logs on disk: files, folders, `.gz`, `.zst`, and the folders of coding agents."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import zstandard

from .base import LogFile

#: Suffixes of log files. Other files in a folder are ignored; explicitly named files are always read.
_LOG_ENDINGS = (".json", ".jsonl", ".ndjson", ".traj")
_PACKED_ENDINGS = (".gz", ".zst")

#: Suffix of a file beside each log of a sub-agent of Claude Code. It contains no messages.
_DETAILS_ENDING = ".meta.json"

#: Name of a file with one model call, as written by LiteLLM clients: "…<model>-<seconds>.<fraction>.json".
_CALL_NAME = re.compile(r"-\d{10}\.\d+\.json(?:\.gz|\.zst)?$")

#: One file per event, as OpenHands stores a conversation: "events/0.json", "events/1.json", …
_EVENT_NAME = re.compile(r"^\d+\.json(?:\.gz|\.zst)?$")

#: Maximum size of a decompressed log, as protection against decompression bombs.
LARGEST_LOG_BYTES = 1 << 30


class UnreadableLogError(Exception):
    """A file cannot be read or decompressed; the message is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSource:
    """The location of a log: one file, or the files of a folder with one model call each, in order."""

    name: str
    files: Sequence[Path]

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.stat().st_size for file in self.files)

    def read(self) -> LogFile:
        """Return the decompressed log. Raises UnreadableLogError."""
        data = b"\n".join(_one_line(_read(file), len(self.files)) for file in self.files)
        return LogFile(name=self.name, data=data, modified=_modified(self.files))


def log_sources(paths: Iterable[Path]) -> Iterator[LogSource]:
    """Yield the logs at the paths, recursively, sorted by name."""
    for path in paths:
        if path.is_dir():
            yield from _folder_sources(path)
        else:
            yield LogSource(name=_plain_name(path), files=(path,))


def discovered_folders(environment: Mapping[str, str] = os.environ, home: Path | None = None) -> list[Path]:
    """Return the folders of this user's Claude Code and Codex logs."""
    home = home or Path.home()
    if configured := environment.get("CLAUDE_CONFIG_DIR"):
        claude = [Path(configured)]
    else:
        claude = [home / ".config" / "claude", home / ".claude"]
    codex = Path(environment.get("CODEX_HOME") or home / ".codex")
    folders = [*(folder / "projects" for folder in claude), codex / "sessions", codex / "archived_sessions"]
    return [folder for folder in folders if folder.is_dir()]


def _folder_sources(folder: Path) -> Iterator[LogSource]:
    entries = sorted(folder.iterdir())
    logs = [entry for entry in entries if entry.is_file() and _is_log(_plain_name(entry))]
    series = _series(folder, logs)
    if series:
        yield LogSource(name=_printable(folder), files=tuple(series))
    for entry in logs:
        if entry not in series:
            yield LogSource(name=_plain_name(entry), files=(entry,))
    for entry in entries:
        if entry.is_dir() and not entry.is_symlink():  # links could cause an infinite loop
            yield from _folder_sources(entry)


def _is_log(name: str) -> bool:
    return name.endswith(_LOG_ENDINGS) and not name.endswith(_DETAILS_ENDING)


def _plain_name(path: Path) -> str:
    return _printable(path.with_suffix("") if path.suffix in _PACKED_ENDINGS else path)


def _printable(path: Path) -> str:
    """Return a path as text. Bytes that are not UTF-8 can be neither printed nor stored, and are replaced."""
    return os.fsencode(path).decode("utf-8", "replace")


def _series(folder: Path, logs: Sequence[Path]) -> list[Path]:
    """Return the files of a folder that form one log, in order, with one model call or one event each."""
    if folder.name == "events":
        events = [entry for entry in logs if _EVENT_NAME.search(entry.name)]
        return sorted(events, key=lambda entry: int(entry.name.split(".", 1)[0]))
    return sorted((entry for entry in logs if _CALL_NAME.search(entry.name)), key=_call_time)


def _call_time(path: Path) -> float:
    found = re.search(r"-(\d{10}\.\d+)\.json", path.name)
    return float(found.group(1)) if found else 0.0


def _modified(files: Sequence[Path]) -> datetime | None:
    times = [file.stat().st_mtime for file in files if file.exists()]
    return datetime.fromtimestamp(max(times), UTC) if times else None


def _one_line(data: bytes, files: int) -> bytes:
    """Return the JSON on one line. JSON has line breaks only between tokens."""
    return data.replace(b"\r", b" ").replace(b"\n", b" ") if files > 1 else data


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
