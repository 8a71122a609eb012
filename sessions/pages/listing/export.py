"""CSV export of the session list, streamed page by page to bound memory."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from accounts.models import Project
from sessions.pages.figures import dollars_plain
from sessions.pages.text import spreadsheet_text
from sessions.selectors.custom_prices import custom_prices
from sessions.selectors.lists.filters import Cursor, SessionFilter
from sessions.selectors.lists.sessions import sessions_values
from sessions.selectors.savings import SessionSavings, session_savings

#: Maximum number of rows; the API has no limit.
ROWS_LIMIT = 50_000
_PAGE = 500

COLUMNS = (
    "id", "external_id", "title", "agent", "model", "tags", "origin", "started_at", "last_active_at", "turns",
    "messages", "compactions", "last_prompt_tokens", "peak_prompt_tokens", "uncached_tokens",
    "cache_read_tokens", "cache_write_tokens", "output_tokens", "cost_usd", "unpriced_turns", "saved_tokens",
    "saved_usd", "health",
)  # fmt: skip

#: The columns of the table that these are made from.
_STORED = (
    "id", "external_id", "title", "agent", "model", "tags", "origin", "started_at", "last_active_at",
    "turn_count", "message_count", "compaction_count", "last_prompt_tokens", "peak_prompt_tokens",
    "uncached_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "cost_microusd",
    "unpriced_turns", "profile__grade",
)  # fmt: skip


def sessions_csv(*, project: Project, filters: SessionFilter) -> Iterator[str]:
    """Yield the CSV file in chunks, header first."""
    yield _lines([COLUMNS])
    prices = custom_prices(project)
    after: Cursor | None = None
    for _ in range(ROWS_LIMIT // _PAGE):
        rows = sessions_values(project=project, filters=filters, columns=_STORED, after=after, limit=_PAGE)
        savings = session_savings([row["id"] for row in rows if row["compaction_count"]], prices=prices)
        yield _lines(_cells(row, savings.get(row["id"])) for row in rows)
        if len(rows) < _PAGE:
            return
        after = Cursor(at=rows[-1]["last_active_at"], id=rows[-1]["id"])


def _lines(rows: Any) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _cells(row: Mapping[str, Any], saved: SessionSavings | None) -> list[Any]:
    return [
        row["id"],
        spreadsheet_text(row["external_id"]),
        spreadsheet_text(row["title"]),
        spreadsheet_text(row["agent"]),
        spreadsheet_text(row["model"]),
        spreadsheet_text(" ".join(row["tags"])),
        row["origin"],
        row["started_at"].isoformat(),
        row["last_active_at"].isoformat(),
        row["turn_count"],
        row["message_count"],
        row["compaction_count"],
        row["last_prompt_tokens"],
        row["peak_prompt_tokens"],
        row["uncached_tokens"],
        row["cache_read_tokens"],
        row["cache_write_tokens"],
        row["output_tokens"],
        dollars_plain(row["cost_microusd"]),
        row["unpriced_turns"],
        saved.tokens if saved else "",
        dollars_plain(saved.microusd) if saved else "",
        row["profile__grade"],
    ]
