"""The report at the end of an import."""

from __future__ import annotations

from collections import Counter, defaultdict

from rich.filesize import decimal

from importers.base import Damage
from importers.registry import known_formats
from sessions.services.imports.logs import KnownLog
from sessions.services.imports.prepare import PreparedSession
from sessions.services.imports.store import ImportResult

#: Damaged lines, conflicts and unknown files that are listed; the rest are counted.
_MAX_LISTED = 20

_COLUMNS = ("files", "new", "grown", "unchanged", "turns", "messages")


class Report:
    """Counts of one run by format, and its problems."""

    def __init__(self) -> None:
        self.bytes = 0
        self._formats: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._damages: list[str] = []
        self._conflicts: list[str] = []
        self._unknown: list[str] = []
        self._unreadable: list[str] = []
        self._redacted: Counter[str] = Counter()

    @property
    def recognized(self) -> bool:
        """Whether any file was in a known format."""
        return bool(self._formats)

    def count_files(self, format: str, files: int) -> None:
        self._formats[format]["files"] += files

    def count_skipped(self, log: KnownLog, files: int) -> None:
        """Count a log that was skipped because it is already stored."""
        self._formats[log.origin].update({"files": files, "unchanged": log.sessions})

    def count_imported(self, format: str, result: ImportResult) -> None:
        """Count a session that was imported."""
        state = "new" if result.created else "grown" if result.changed else "unchanged"
        counts = {state: 1, "turns": result.turns_added, "messages": result.messages_added}
        self._formats[format].update(counts)
        self._redacted.update(result.redacted)

    def count_read(self, format: str, session: PreparedSession) -> None:
        """Count a session that was read in a dry run."""
        messages = sum(len(turn.messages) for turn in session.turns)
        self._formats[format].update({"new": 1, "turns": len(session.turns), "messages": messages})
        self._redacted.update(session.redacted)

    def add_damage(self, damage: Damage) -> None:
        self._damages.append(f"{damage.file}:{damage.line}: {damage.reason}")

    def add_conflict(self, file: str, reason: str) -> None:
        self._conflicts.append(f"{file}: {reason}")

    def add_unknown(self, name: str, reason: str) -> None:
        self._unknown.append(f"{name}: {reason}")

    def add_unreadable(self, reason: str) -> None:
        self._unreadable.append(reason)

    def text(self, seconds: float, *, dry_run: bool) -> str:
        """Return the report. In a dry run every session counts as new."""
        lines = [*self._table(), "", *self._secrets()]
        lines += _named("Damaged lines (the rest of these files was imported)", self._damages)
        lines += _named("Conflicting sessions, left unchanged", self._conflicts)
        lines += _named("Files that could not be read", self._unreadable)
        if self._unknown:
            lines += _named("Files in unknown formats, skipped", self._unknown)
        if not self.recognized:
            lines += ["Known formats:", *(f"  {line}" for line in known_formats().splitlines())]
        done = "read (dry run, nothing stored)" if dry_run else "imported"
        size, rate = decimal(self.bytes), decimal(int(self.bytes / seconds))
        return "\n".join([*lines, f"{size} {done} in {seconds:.1f} s, {rate}/s"])

    def _secrets(self) -> list[str]:
        if not self._redacted:
            return []
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in self._redacted.most_common())
        return [f"Secrets redacted: {kinds}"]

    def _table(self) -> list[str]:
        total = sum(self._formats.values(), Counter[str]())
        rows = [*sorted(self._formats.items()), ("total", total)]
        header = f"{'format':<16}" + "".join(f"{column:>11}" for column in _COLUMNS)
        return [header, *(f"{name:<16}" + "".join(f"{row[c]:>11,}" for c in _COLUMNS) for name, row in rows)]


def _named(title: str, entries: list[str]) -> list[str]:
    if not entries:
        return []
    more = [f"  … and {len(entries) - _MAX_LISTED:,} more"] if len(entries) > _MAX_LISTED else []
    return [f"{title}: {len(entries):,}", *(f"  {entry}" for entry in entries[:_MAX_LISTED]), *more]
