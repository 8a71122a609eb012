"""Lists in pages: how many rows one has, and where the next begins.

Cursors are opaque and not signed: one holds no secret and grants nothing.
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
from sessions.api.parameters import int_param
from sessions.api.serializers import MAX_TOKENS
from sessions.selectors.lookups import as_uuid

Row = TypeVar("Row")


def paging(*, default: int = 50, most: int = 200) -> list[OpenApiParameter]:
    """The parameters of a list, as the documentation tells them."""
    limit = OpenApiParameter("limit", int, description=f"1 to {most}, else {default}")
    return [limit, OpenApiParameter("cursor", str)]


def limit_param(call: ApiCall, *, default: int = 50, most: int = 200) -> int:
    """How many rows a page has. Raises `InvalidRequest`."""
    return int_param(call, "limit", default=default, least=1, most=most)


def page_json(
    rows: Sequence[Row], limit: int, shown: Callable[[Row], Any], key: Callable[[Row], Sequence[Any]]
) -> dict[str, Any]:
    """A page of at most `limit` rows. `rows` has one more where another page follows, which begins behind the
    last row shown, named by its `key`."""
    more = cursor_encode(*key(rows[limit - 1])) if len(rows) > limit else None
    return {"data": [shown(row) for row in rows[:limit]], "next_cursor": more}


# -- Cursors ------------------------------------------------------------------------------------


def cursor_encode(*keys: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(keys)).decode().rstrip("=")


def cursor_param(call: ApiCall, *types: type) -> list[Any] | None:
    """The keys of the cursor, None without one. Raises `InvalidRequest` where they are not of `types`."""
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
    """The number that the cursor holds, None without one. Raises `InvalidRequest`."""
    keys = cursor_param(call, int)
    if keys is None:
        return None
    number: int = keys[0]
    if not 0 <= number <= MAX_TOKENS:
        raise invalid_cursor()
    return number


def id_cursor(call: ApiCall) -> UUID | None:
    """The id that the cursor holds, None without one. Raises `InvalidRequest`."""
    keys = cursor_param(call, str)
    if keys is None:
        return None
    id = as_uuid(keys[0])
    if id is None:
        raise invalid_cursor()
    return id


def invalid_cursor() -> InvalidRequest:
    return InvalidRequest("invalid_cursor", "the cursor was not made by this call", param="cursor")
