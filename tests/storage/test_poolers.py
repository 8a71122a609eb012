"""Poolers such as PgBouncer may send each statement outside of a transaction to another connection."""

from __future__ import annotations

import pytest
from django.db import connection

from accounts.models import Project


@pytest.mark.django_db
def test_no_statement_needs_the_cursor_of_an_earlier_one(project: Project, other_project: Project) -> None:
    rows = Project.objects.iterator(chunk_size=1)
    assert next(rows)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_cursors WHERE statement NOT LIKE '%pg_cursors%'")
        assert cursor.fetchone() == (0,)
