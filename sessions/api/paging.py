"""Pagination of lists by cursor.

Cursors are opaque but not signed: they contain no secrets and grant no access.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

import orjson
from drf_spectacular.utils import OpenApiParameter

from sessions.api.endpoint import ApiCall
from sessions.api.errors import InvalidRequest
from sessions.api.parameters import int_param, int_parameter
from sessions.api.serializers.fields import MAX_TOKENS
from sessions.selectors.lookups import as_uuid

Row = TypeVar("Row")

_CURSOR = "The `next_cursor` of the previous page."


def paging(*, default: int = 50, maximum: int = 200) -> list[OpenApiParameter]:
    """Return the OpenAPI parameters of a paginated list."""
    text = f"Number of items to return, 1 to {maximum}. Defaults to {default}."
    limit = int_parameter("limit", text, minimum=1, maximum=maximum)
    cursor = OpenApiParameter(
        "cursor", {"type": "string", "pattern": "^[A-Za-z0-9_-]*$"}, description=_CURSOR
    )
    return [limit, cursor]


def limit_param(call: ApiCall, *, default: int = 50, maximum: int = 200) -> int:
    """Return the page size from the query. Raises `InvalidRequest`."""
    return int_param(call, "limit", default=default, minimum=1, maximum=maximum)


def page_json(
    rows: Sequence[Row], limit: int, to_json: Callable[[Row], Any], key: Callable[[Row], Sequence[Any]]
) -> dict[str, Any]:
    """Return a page of at most `limit` rows with the cursor of the next page.

    `rows` has one row more than `limit` if another page follows. The cursor holds the `key` of the last row
    on this page.
    """
    more = cursor_encode(*key(rows[limit - 1])) if len(rows) > limit else None
    return {"data": [to_json(row) for row in rows[:limit]], "next_cursor": more}


# -- Cursors ------------------------------------------------------------------------------------


def cursor_encode(*keys: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(keys)).decode().rstrip("=")


def cursor_param(call: ApiCall, *types: type) -> list[Any] | None:
    """Return the keys of the cursor, or None. Raises `InvalidRequest` unless they have `types`."""
    if not (text := call.query.get("cursor")):
        return None
    try:
        keys = orjson.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, orjson.JSONDecodeError, UnicodeEncodeError, ValueError):
        keys = None
    if (
        not isinstance(keys, list)
        or len(keys) != len(types)
        or not all(type(key) is kind for key, kind in zip(keys, types, strict=True))
    ):
        raise invalid_cursor()
    return keys


def number_cursor(call: ApiCall) -> int | None:
    """Return the number in the cursor, or None without one. Raises `InvalidRequest`."""
    keys = cursor_param(call, int)
    if keys is None:
        return None
    number: int = keys[0]
    if not 0 <= number <= MAX_TOKENS:
        raise invalid_cursor()
    return number


def id_cursor(call: ApiCall) -> UUID | None:
    """Return the id in the cursor, or None without one. Raises `InvalidRequest`."""
    keys = cursor_param(call, str)
    if keys is None:
        return None
    id = as_uuid(keys[0])
    if id is None:
        raise invalid_cursor()
    return id


def invalid_cursor() -> InvalidRequest:
    return InvalidRequest(
        "invalid_cursor",
        "Invalid cursor. Pass the `next_cursor` of this endpoint's previous page.",
        param="cursor",
    )
