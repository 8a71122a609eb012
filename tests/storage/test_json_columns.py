"""JSON columns that are read without a model."""

from __future__ import annotations

import json

import pytest

from sessions.store.postgres import rows_fetch

pytestmark = pytest.mark.django_db


def test_numbers_of_any_size_are_read() -> None:
    text = '{"large": 12345678901234567890123, "huge": 1.5e400, "tiny": 1e-9, "text": "\\u00e9"}'
    [(value,)] = rows_fetch("SELECT %s::jsonb", [text])
    assert {**value, "huge": None} == {**json.loads(text), "huge": None}
    assert value["huge"] == (15 * 10**399)
