"""Reads of what was pushed, as a list: small columns, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sessions.models import AgentSession, Message

PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPage:
    """Messages without their bodies, newest first; `before` is where the next page goes on."""

    rows: Sequence[Message]
    before: int | None


def raw_messages(*, session: AgentSession, before: int | None) -> RawPage:
    """One query by the primary key."""
    rows = session.messages.only("position", "turn_index", "role", "tokens", "tool_name", "source_id")
    rows = rows.order_by("-position")
    if before is not None:
        rows = rows.filter(position__lt=before)
    found = list(rows[: PAGE + 1])
    page = found[:PAGE]
    return RawPage(rows=page, before=page[-1].position if len(found) > PAGE else None)
