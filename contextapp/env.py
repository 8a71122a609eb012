"""Read environment variables, each with its type and default.

An empty variable counts as unset, because Compose passes the variables that `.env` leaves blank. Nothing here
imports Django, so that the supervisor (`python -m contextapp`) uses little memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from environs import Env, EnvValidationError, validate

ROOT = Path(__file__).resolve().parent.parent

T = TypeVar("T")

_env = Env()


class InvalidVariable(SystemExit):
    """An environment variable is invalid. Ends the process with one line on stderr, without a traceback."""

    def __init__(self, message: str) -> None:
        super().__init__(f"contextapp: {message}")


def text(name: str, default: str = "") -> str:
    return _env.str(name, "") or default


def integer(name: str, default: int, *, minimum: int = 0, maximum: int | None = None) -> int:
    limits = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    allowed = validate.Range(min=minimum, max=maximum)
    return _read(_env.int, name, default, f"a whole number {limits}", allowed)


def seconds(name: str, default: float) -> float:
    allowed = validate.Range(min=0, min_inclusive=False)
    return _read(_env.float, name, default, "a number of seconds greater than 0", allowed)


def flag(name: str, *, default: bool = False) -> bool:
    return _read(_env.bool, name, default, "true or false")


def items(name: str, default: str = "") -> list[str]:
    """Return the parts of a comma-separated list."""
    return [item.strip() for item in text(name, default).split(",") if item.strip()]


def choice(name: str, options: tuple[str, ...], default: str = "") -> str:
    return _read(_env.str, name, default, " or ".join(options), validate.OneOf(options))


def url(name: str, default: str, *, schemes: tuple[str, ...], example: str) -> str:
    """Return a URL. The error message does not contain an invalid URL, which may include a password."""
    value = text(name, default)
    if value.partition("://")[0] not in schemes:
        raise InvalidVariable(f"{name} is invalid: expected a URL such as {example}.")
    return value


def home() -> Path:
    """Return the data folder."""
    return Path(text("CONTEXTAPP_HOME") or ROOT / ".contextapp").absolute()


def _read(parse: Callable[..., Any], name: str, default: T, expected: str, *validators: Any) -> T:
    if not os.environ.get(name):
        return default
    try:
        value: T = parse(name, validate=list(validators))
    except EnvValidationError:
        raise InvalidVariable(f"{name} is {os.environ[name]!r}: expected {expected}.") from None
    return value
