"""Rows that are inserted by COPY."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from sessions.store.postgres import rows_copy


@pytest.mark.django_db
def test_an_error_of_the_server_is_one_of_django() -> None:
    row = {"app_label": "twice", "model": "twice"}
    with pytest.raises(IntegrityError), transaction.atomic():
        rows_copy("django_content_type", [row, row])
