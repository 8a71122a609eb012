"""The list of pushed messages, without their bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sessions.models import AgentSession, Message

PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPage:
    """A page of messages without bodies, newest first. `before` is the cursor of the next page."""

    rows: Sequence[Message]
    before: int | None


def raw_messages(*, session: AgentSession, before: int | None) -> RawPage:
    """Return a page of messages before a position. One query by the primary key."""
    rows = session.messages.only("position", "turn_index", "role", "tokens", "tool_name", "source_id")
    rows = rows.order_by("-position")
    if before is not None:
        rows = rows.filter(position__lt=before)
    found = list(rows[: PAGE + 1])
    page = found[:PAGE]
    return RawPage(rows=page, before=page[-1].position if len(found) > PAGE else None)
