"""Imports of logs."""

from __future__ import annotations

from typing import Literal, TypedDict

from contextapp_client.types.common import JsonObject, Redacted


class ImportProgress(TypedDict):
    """Number of sessions and messages imported so far. The totals are 0 until the log has been read."""

    sessions: int
    sessions_total: int
    messages: int
    messages_total: int


class ImportedSession(TypedDict):
    """The result of an import for one session. `id` is None after a conflict."""

    id: str | None
    external_id: str
    state: Literal["partial", "new", "grown", "unchanged", "conflict"]
    turns: int
    messages: int
    reason: str | None
    redacted: list[Redacted]


class Import(TypedDict):
    """The import of a log, with its first 100 sessions."""

    id: str
    state: Literal["pending", "running", "done", "failed", "cancelled"]
    name: str
    format: str | None
    size: int
    progress: ImportProgress
    error: JsonObject | None
    created_at: str
    finished_at: str | None
    sessions: list[ImportedSession]
    damage_count: int
    damages: list[JsonObject]
