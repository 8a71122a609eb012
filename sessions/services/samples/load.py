"""Load the sample session that ships with the product."""

from __future__ import annotations

from accounts.models import Project
from importers.base import ImportedSession
from importers.registry import recognize
from sessions.models import AgentSession
from sessions.services.imports.store import session_import
from sessions.services.samples.log import sample_log


def sample_load(*, project: Project) -> AgentSession:
    """Import the sample session into the project, or return it if it exists."""
    log = sample_log()
    importer = recognize(log)
    if importer is None:
        raise LookupError(f"no importer recognizes the sample {log.name}")
    imported = next(item for item in importer.read(log) if isinstance(item, ImportedSession))
    return session_import(project=project, imported=imported, origin=importer.name).session
