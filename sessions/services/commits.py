"""Work that follows a commit and whose failure must not fail the request."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import ParamSpec

from django.db import transaction

Arguments = ParamSpec("Arguments")


def after_commit(
    work: Callable[Arguments, object], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> None:
    """Call a function after the commit. Its errors are logged, because the changes are stored already."""
    # Django logs the error with the name of the function, which `partial` does not have.
    transaction.on_commit(update_wrapper(partial(work, *args, **kwargs), work), robust=True)
