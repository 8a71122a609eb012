"""CSV export of the session list, streamed page by page to bound memory."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from accounts.models import Project
from sessions.pages.figures import dollars_plain
from sessions.pages.text import spreadsheet_text
from sessions.selectors.lists.filters import Cursor, SessionFilter
from sessions.selectors.lists.sessions import SessionRow, sessions_list

#: Maximum number of rows; the API has no limit.
ROWS_LIMIT = 50_000
_PAGE = 500

COLUMNS = (
    "id", "external_id", "title", "agent", "model", "tags", "origin", "started_at", "last_active_at", "turns",
    "messages", "compactions", "last_prompt_tokens", "peak_prompt_tokens", "uncached_tokens",
    "cache_read_tokens", "cache_write_tokens", "output_tokens", "cost_usd", "unpriced_turns", "saved_tokens",
    "saved_usd", "health",
)  # fmt: skip


def sessions_csv(*, project: Project, filters: SessionFilter) -> Iterator[str]:
    """Yield the CSV file in chunks, header first."""
    yield _lines([COLUMNS])
    after: Cursor | None = None
    for _ in range(ROWS_LIMIT // _PAGE):
        page = sessions_list(project=project, filters=filters, after=after, limit=_PAGE)
        yield _lines(_cells(row) for row in page.rows)
        if page.next_cursor is None:
            return
        after = Cursor.decode(page.next_cursor)


def _lines(rows: Any) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _cells(row: SessionRow) -> list[Any]:
    session, saved = row.session, row.savings
    profile = getattr(session, "profile", None)
    return [
        session.pk,
        spreadsheet_text(session.external_id),
        spreadsheet_text(session.title),
        spreadsheet_text(session.agent),
        spreadsheet_text(session.model),
        spreadsheet_text(" ".join(session.tags)),
        session.origin,
        session.started_at.isoformat(),
        session.last_active_at.isoformat(),
        session.turn_count,
        session.message_count,
        session.compaction_count,
        session.last_prompt_tokens,
        session.peak_prompt_tokens,
        session.uncached_tokens,
        session.cache_read_tokens,
        session.cache_write_tokens,
        session.output_tokens,
        dollars_plain(session.cost_microusd),
        session.unpriced_turns,
        saved.tokens if saved else "",
        dollars_plain(saved.microusd) if saved else "",
        profile.grade if profile else "",
    ]
