"""Sessions that touched the same files as a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

from psycopg.types.numeric import Int4

from search.keys import project_salt, term_key
from sessions.models import AgentSession, SearchSegment
from sessions.store.postgres import rows_fetch_by_index

#: Related sessions returned, files compared, and files named for each session.
MOST, _FILES, _NAMED = 5, 30, 4
#: Segments of the session whose files are counted, from the newest: some 65,000 messages.
_SEGMENTS = 256
#: A file in more than this share of the other sessions says nothing.
_COMMON = 0.5

#: Folded names that most repositories have: two sessions that mention them need not be related.
_GENERIC = {
    "__init__.py", "__main__.py", "agents.md", "cargo.toml", "changelog.md", "claude.md",
    "conftest.py", "contributing.md", "go.mod", "go.sum", "index.html", "index.js", "index.ts",
    "index.tsx", "license.md", "main.go", "main.py", "main.rs", "mod.rs", "package-lock.json",
    "package.json", "pyproject.toml", "readme.md", "readme.rst", "requirements.txt",
    "settings.json", "setup.cfg", "setup.py", "tsconfig.json", "types.ts", "uv.lock", "yarn.lock",
}  # fmt: skip

#: A session ranks by the files that it mentions; one that few sessions mention counts more.
_RELATED: LiteralString = """
WITH key AS (
    SELECT * FROM unnest(%(keys)s::int[]) WITH ORDINALITY AS key (key, number)
), hit AS MATERIALIZED (
    SELECT DISTINCT key.number, s.session_id
      FROM key CROSS JOIN LATERAL (
          SELECT project_id, session_id FROM agent_sessions_searchsegment
           WHERE keys @> ARRAY[key.key] OFFSET 0) s
     WHERE s.project_id = %(project)s
), frequency AS (
    SELECT number, count(*) AS sessions FROM hit GROUP BY number
), total AS (
    SELECT greatest(count(DISTINCT session_id), 1) AS sessions
      FROM agent_sessions_searchsegment WHERE project_id = %(project)s
)
SELECT hit.session_id, array_agg(number ORDER BY f.sessions, number)
  FROM hit JOIN frequency f USING (number) CROSS JOIN total
 WHERE hit.session_id <> %(session)s
   AND (f.sessions <= 3 OR f.sessions <= %(common)s * total.sessions)
 GROUP BY hit.session_id
 ORDER BY sum(ln(1 + total.sessions::float8 / f.sessions)) DESC, hit.session_id DESC
 LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedSession:
    """A session that mentions files of another one, the rarest first. `more` counts those not named."""

    session: AgentSession
    files: Sequence[str]
    more: int


def related_sessions(*, session: AgentSession) -> list[RelatedSession]:
    """Return the sessions of the project that have most files in common with a session, best first."""
    files = _files_of(session)
    if not files:
        return []
    salt = project_salt(session.project_id)
    parameters = {
        "keys": [Int4(term_key(salt, name)) for name in files],
        "project": session.project_id,
        "session": session.pk,
        "common": _COMMON,
        "most": MOST,
    }
    rows: Sequence[tuple[UUID, list[int]]] = rows_fetch_by_index(_RELATED, parameters)
    found = AgentSession.objects.filter(project_id=session.project_id).in_bulk([id for id, _ in rows])
    return [
        RelatedSession(
            session=found[id],
            files=[files[number - 1] for number in numbers[:_NAMED]],
            more=max(0, len(numbers) - _NAMED),
        )
        for id, numbers in rows
        if id in found
    ]


def _files_of(session: AgentSession) -> list[str]:
    """Return the names of the files that most of the newest segments touch, without their folders.

    Leaves out names without a stem, such as `.json` and `.gitignore`, and those that most repositories have.
    Equally frequent names are in alphabetical order.
    """
    counted: Counter[str] = Counter()
    segments = SearchSegment.objects.filter(session=session, project_id=session.project_id)
    for files in segments.order_by("-first").values_list("files", flat=True)[:_SEGMENTS]:
        names = {file.rpartition("/")[2] for file in files}
        counted.update(name for name in names - _GENERIC if not name.startswith("."))
    return sorted(counted, key=lambda name: (-counted[name], name))[:_FILES]
