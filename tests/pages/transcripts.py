"""Synthetic transcripts, imported like real ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from accounts.models import Project
from compaction.messages import Usage
from importers.base import ClientCompaction, ImportedMessage, ImportedSession, ImportedTurn
from sessions.models import AgentSession
from sessions.services.imports.store import session_import

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MODEL = "claude-sonnet-4-5"


def message(role: str, content: Any, name: str, **flags: bool) -> ImportedMessage:
    return ImportedMessage(body={"role": role, "content": content}, source_id=name, **flags)


def turn(
    index: int,
    messages: Sequence[ImportedMessage],
    *,
    usage: Usage | None = None,
    model: str = MODEL,
    compaction: ClientCompaction | None = None,
    minutes: int = 1,
) -> ImportedTurn:
    at = START + timedelta(minutes=index * minutes)
    return ImportedTurn(
        messages=messages,
        model=model,
        usage=usage,
        response_id=f"response-{index}" if usage else None,
        at=at,
        client_compaction=compaction,
    )


def reading_turn(index: int, text: str = "one line") -> ImportedTurn:
    """A turn with the result of the previous call and a new call."""
    result = {"type": "tool_result", "tool_use_id": f"call-{index - 1}", "content": text}
    call = {"type": "tool_use", "id": f"call-{index}", "name": "Read", "input": {"file_path": f"f{index}.py"}}
    question = [result] if index else "Please read the files."
    usage = Usage(
        uncached_tokens=5, cache_read_tokens=1_000 * index, cache_write_tokens=1_000, output_tokens=9
    )
    return turn(
        index,
        [message("user", question, f"u{index}"), message("assistant", [call], f"a{index}")],
        usage=usage,
    )


def make_session(
    project: Project,
    turns: Sequence[ImportedTurn] = (),
    *,
    name: str = "s-1",
    title: str = "Reads some files",
    agent: str = "reader",
    model: str = MODEL,
    parent: str | None = None,
    tags: Sequence[str] = (),
    format: str = "anthropic",
    started_at: datetime = START,
) -> AgentSession:
    imported = ImportedSession(
        external_id=name,
        format=format,
        agent=agent,
        turns=turns or [reading_turn(index) for index in range(3)],
        model=model,
        title=title,
        parent_external_id=parent,
        started_at=started_at,
        tags=tags,
    )
    return session_import(project=project, imported=imported).session


def active_session(project: Project) -> AgentSession:
    """Return a session that is still active."""
    session = make_session(project, title="Unbelievably long session")
    session.last_active_at = timezone.now()
    session.save(update_fields=["last_active_at"])
    return session
