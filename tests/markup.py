"""Read the HTML of pages in tests, independently of how the templates break their lines."""

from __future__ import annotations

from typing import Any


def one_line(response: Any) -> str:
    """Return the response's content with each run of whitespace replaced by one space."""
    return " ".join(response.content.decode().split())
