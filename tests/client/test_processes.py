"""The client in other processes: forks, and exceptions that are sent from one process to another."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
from contextapp_client import ApiError, NotFound


@pytest.mark.parametrize("duplicate", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy])
def test_an_error_is_complete_in_another_process(duplicate: Callable[[ApiError], ApiError]) -> None:
    """Otherwise a `ProcessPoolExecutor` breaks, and Celery replaces the error."""
    error = NotFound(404, "not_found", "No session.", param="id", retry_after=2.0)
    again = duplicate(error)
    assert type(again) is NotFound
    assert str(again) == str(error) == "404 not_found: No session."
    assert vars(again) == vars(error)
