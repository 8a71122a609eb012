"""The settings that a request may contain in headers."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.callers import COMPACT, OBSERVE
from gateway.http import Refused
from sessions.selectors.token_budgets import MAX_BUDGET

BUDGET, MODE, BYPASS = "x-contextapp-budget", "x-contextapp-mode", "x-contextapp-bypass"


def mode_of(headers: Mapping[bytes, bytes]) -> str:
    """Return the mode that the request specifies, or "". Raises `Refused` if there is no such mode."""
    text = _text(headers, MODE).lower()
    if text not in {"", OBSERVE, COMPACT}:
        raise Refused(400, "invalid_request_error", f"`X-Contextapp-Mode` must be {OBSERVE} or {COMPACT}.")
    return text


def is_bypassed(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether the request is only to be forwarded. Raises `Refused` if that is not clear."""
    text = _text(headers, BYPASS).lower()
    if text not in {"", "0", "1", "false", "true"}:
        raise Refused(400, "invalid_request_error", "`X-Contextapp-Bypass` must be 1 or 0.")
    return text in {"1", "true"}


def budget_check(headers: Mapping[bytes, bytes]) -> None:
    """Check the budget that the request specifies, if any. Raises `Refused`."""
    text = _text(headers, BUDGET)
    if text and budget_of(text) is None:
        limits = f"from 1 to {MAX_BUDGET:,}, such as 60000"
        raise Refused(
            400, "invalid_request_error", f"`X-Contextapp-Budget` must be a whole number of tokens {limits}."
        )


def budget_of(text: str) -> int | None:
    """Return the number of tokens in a budget header, or None if it is not valid."""
    is_number = text.isascii() and text.isdigit() and len(text) <= 10
    return int(text) if is_number and 0 < int(text) <= MAX_BUDGET else None


def _text(headers: Mapping[bytes, bytes], name: str) -> str:
    return headers.get(name.encode(), b"").decode("latin-1").strip()
