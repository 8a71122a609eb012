"""`manage.py prepare` recognizes a database that it cannot use."""

from __future__ import annotations

import pytest
from django.core.management import CommandError
from django.db import connection

from contextapp.management.commands.prepare import check_tables

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("change", ["DROP COLUMN calibration_factor", "ADD COLUMN earlier int"])
def test_the_tables_of_an_earlier_version_are_reported(change: str) -> None:
    check_tables()
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE agent_sessions_turn {change}")
    with pytest.raises(CommandError, match="are those of an earlier version"):
        check_tables()
