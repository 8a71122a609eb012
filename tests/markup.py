"""The paths of pages in tests, and their HTML, independently of how the templates break their lines."""

from __future__ import annotations

from typing import Any

from django.urls import reverse


def address(name: str, *more: object) -> str:
    """Return the path of a page of the project `alpha`."""
    return reverse(name, args=["alpha", *more])


def one_line(response: Any) -> str:
    """Return the response's content with each run of whitespace replaced by one space."""
    return " ".join(response.content.decode().split())
