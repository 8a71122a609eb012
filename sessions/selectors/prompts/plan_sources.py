"""Read what a plan needs besides messages and edits, in one query.

Django's queries would take longer than reading and parsing the messages of a short prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString

from psycopg.types.numeric import Int4

from compaction.view.components import Components
from sessions.models import AgentSession, Recap
from sessions.store.edit_texts import TEXTS, Base
from sessions.store.postgres import rows_fetch

_SOURCES: LiteralString = f"""
SELECT s.edits, p.system_tokens, p.tools_tokens, r.lines, r.body, r.edit, r.texts, r.trigger,
       EXISTS (SELECT FROM agent_sessions_memoryrevision m WHERE m.session_id = %(session)s)
  FROM (SELECT) AS one
  LEFT JOIN agent_sessions_promptsnapshot s ON s.session_id = %(session)s
  LEFT JOIN agent_sessions_preamble p ON p.session_id = %(session)s AND p.version = %(preamble)s
  LEFT JOIN LATERAL (
       SELECT r.lines, r.body, e.id AS edit, {TEXTS} AS texts, c.trigger
         FROM agent_sessions_compaction c
         JOIN agent_sessions_recap r ON r.compaction_id = c.id
         LEFT JOIN agent_sessions_edit e ON e.compaction_id = c.id AND e.ordinal = r.edit_ordinal
        WHERE c.session_id = %(session)s AND c.state = 'done'
        ORDER BY c.number DESC, r.version DESC LIMIT 1) r ON true
"""  # noqa: S608  a constant is inserted


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSources:
    """The keys of the edits in force, the sizes of system prompt and tools, and the newest recap, if any.

    `base` is the text of the recap, for the next one to repeat; `trigger` is that of the recap's compaction.
    `has_memory` states whether a working memory was written.
    """

    edits: Sequence[int]
    components: Components
    recap: Recap | None
    base: Base | None
    trigger: str
    has_memory: bool


def plan_sources(session: AgentSession) -> PlanSources:
    """Read the sources of a session's next plan."""
    parameters = {"session": session.pk, "preamble": Int4(session.preamble_version)}
    [(edits, system, tools, lines, body, edit, texts, trigger, has_memory)] = rows_fetch(_SOURCES, parameters)
    recap = base = None
    if trigger is not None:
        recap = Recap(lines=lines, body=body)
        recap.texts = texts  # type: ignore[attr-defined]  # as in the rows of `sessions.selectors.compactions.recaps`
        base = Base.of(edit, texts) if texts is not None else None
    return PlanSources(
        edits=edits or (),
        components=Components(system=system or 0, tools=tools or 0),
        recap=recap,
        base=base,
        trigger=trigger or "",
        has_memory=has_memory,
    )
