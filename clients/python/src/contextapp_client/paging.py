"""Paginated lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from contextapp_client.transport import Transport


def pages(transport: Transport, *path: str, query: Mapping[str, object] | None = None) -> Iterator[Any]:
    """Iterate over the items of all pages. Each page is fetched when it is needed."""
    cursor: str | None = None
    while True:
        page = transport.call("GET", *path, query={**(query or {}), "cursor": cursor}).json()
        yield from page["data"]
        cursor = page.get("next_cursor")
        if not cursor:
            return
