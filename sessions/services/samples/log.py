"""The sample session that is imported from a log. Its client compacts its own context."""

from __future__ import annotations

from dataclasses import replace

from accounts.models import Project
from importers.base import ImportedSession, LogFile
from importers.registry import recognize
from sessions.models import AgentSession
from sessions.services.imports.store import session_import
from sessions.services.samples.claude_code import log_bytes


def sample_log() -> LogFile:
    """Return a fictional coding task of about fifty turns, in Claude Code's log format."""
    return LogFile(name="sample-session.jsonl", data=log_bytes())


def sample_log_import(*, project: Project, title: str = "") -> AgentSession:
    """Import the log, or return its session if it exists. `title` replaces the title in the log."""
    log = sample_log()
    importer = recognize(log)
    if importer is None:
        raise LookupError(f"no importer recognizes the sample {log.name}")
    imported = next(item for item in importer.read(log) if isinstance(item, ImportedSession))
    if title:
        imported = replace(imported, title=title, tags=["sample"])
    return session_import(project=project, imported=imported, origin=importer.name).session
