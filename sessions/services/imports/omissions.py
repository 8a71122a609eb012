"""Mark the stored messages of which a longer log shows that the client sent them only once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sessions.models import AgentSession
from sessions.services.imports.prepare import PreparedTurn
from sessions.services.ingestion import IngestedMessage


def omissions_update(session: AgentSession, turns: Iterable[PreparedTurn]) -> Sequence[IngestedMessage]:
    """Mark the stored messages, and return those that were not marked before.

    The caller has locked the session, and saves it.
    """
    once = {m.source_id: m for turn in turns for m in turn.messages if m.omitted_from is not None}
    if not once:
        return ()
    rows = session.messages.filter(source_id__in=list(once), omitted_from=None)
    found = list(rows.values_list("position", "source_id"))
    for position, source_id in found:
        session.messages.filter(position=position).update(omitted_from=once[source_id].omitted_from)
    session.omitted_count += len(found)
    return [once[source_id] for _, source_id in found]
