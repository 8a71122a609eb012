"""Read environment variables, each with its type and default.

An empty variable counts as unset, because Compose passes the variables that `.env` leaves blank. Nothing here
imports Django or a library that describes schemas: each program reads its variables, and the supervisor and
the scheduler are to use little memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent

T = TypeVar("T")

_FLAGS = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), False),
}

#: A host name, a wildcard such as `.example.com`, an IPv4 address, or an IPv6 address in brackets.
_HOST = re.compile(r"[^\s/:\[\]]+|\[[^\s/\[\]]+\]")


class InvalidVariable(SystemExit):
    """An environment variable is invalid. Ends the process with one line on stderr, without a traceback."""

    def __init__(self, message: str) -> None:
        super().__init__(f"contextapp: {message}")


def text(name: str, default: str = "") -> str:
    return os.environ.get(name) or default


def integer(name: str, default: int, *, minimum: int = 0, maximum: int | None = None) -> int:
    limits = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"

    def is_allowed(value: int) -> bool:
        return value >= minimum and (maximum is None or value <= maximum)

    return _read(int, name, default, f"a whole number {limits}", is_allowed)


def port() -> int:
    """Return the port of the web server."""
    return integer("CONTEXTAPP_PORT", 8000, minimum=1, maximum=65535)


def gateway_port() -> int:
    """Return the port of the gateway: by default, the one after the web server's."""
    return integer("CONTEXTAPP_GATEWAY_PORT", port() + 1, minimum=1, maximum=65535)


def web_workers() -> int:
    """Return the number of web processes."""
    return integer("CONTEXTAPP_WEB_WORKERS", 2, minimum=1)


def web_threads() -> int:
    """Return the number of threads of a web process."""
    return integer("CONTEXTAPP_WEB_THREADS", 4, minimum=1)


def worker_processes() -> int:
    """Return the number of processes of the worker."""
    return integer("CONTEXTAPP_WORKERS", 2, minimum=1)


def pool_size() -> int:
    """Return the number of database connections of a web process. 0: one for each thread."""
    return integer("CONTEXTAPP_DB_POOL", 8)


def seconds(name: str, default: float) -> float:
    return _read(float, name, default, "a number of seconds greater than 0", lambda value: 0 < value < inf)


def flag(name: str, *, default: bool = False) -> bool:
    return _read(lambda value: _FLAGS[value.lower()], name, default, "true or false")


def items(name: str, default: str = "") -> list[str]:
    """Return the parts of a comma-separated list."""
    return [item.strip() for item in text(name, default).split(",") if item.strip()]


def hosts(name: str, default: str) -> list[str]:
    """Return a comma-separated list of hosts. They have no ports: Django compares hosts without them."""
    found = items(name, default)
    if not all(map(_HOST.fullmatch, found)):
        raise InvalidVariable(
            f"{name} is invalid: expected host names and addresses without a scheme or port, such as "
            "x.example or [::1]."
        )
    return found


def origins(name: str) -> list[str]:
    """Return a comma-separated list of origins, each without a slash at its end."""
    found = [item.rstrip("/") for item in items(name)]
    if not all(origin.startswith(("https://", "http://")) for origin in found):
        raise InvalidVariable(f"{name} is invalid: expected origins such as https://ctx.example.com.")
    return found


def choice(name: str, options: tuple[str, ...], default: str = "") -> str:
    return _read(str, name, default, " or ".join(options), lambda value: value in options)


def url(
    name: str, default: str, *, schemes: tuple[str, ...], example: str, separator: str | None = None
) -> str:
    """Return a URL, or several if there is a separator.

    The error message does not contain an invalid URL, which may include a password.
    """
    value = text(name, default)
    parts = value.split(separator) if separator else [value]
    if value and not all(_is_url(part, schemes) for part in parts):
        raise InvalidVariable(
            f"{name} is invalid: expected a URL such as {example}, with special characters in names and "
            "passwords percent-encoded."
        )
    return value


def web_url(name: str, default: str = "") -> str:
    """Return the URL of a web server, without a slash at its end."""
    return url(name, default, schemes=("https", "http"), example="https://host.example.com").rstrip("/")


def broker_url(name: str) -> str:
    """Return the URL of a broker, or those of a RabbitMQ cluster, separated by semicolons; "" by default."""
    schemes = ("redis", "rediss", "redis+socket", "amqp", "amqps")
    return url(name, "", schemes=schemes, example="redis://:password@host:6379/0", separator=";")


def _is_url(value: str, schemes: tuple[str, ...]) -> bool:
    """Return whether `value` has one of the schemes and no user name or password that contains a slash."""
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        return False
    is_known = value.partition("://")[0] in schemes
    return is_known and "@" not in f"{parts.path}{parts.query}{parts.fragment}"


def home() -> Path:
    """Return the data folder."""
    return Path(text("CONTEXTAPP_HOME") or ROOT / ".contextapp").absolute()


def _read(
    parse: Callable[[str], T],
    name: str,
    default: T,
    expected: str,
    is_allowed: Callable[[T], bool] = lambda _: True,
) -> T:
    written = text(name)
    if not written:
        return default
    with suppress(ValueError, KeyError):
        value = parse(written)
        if is_allowed(value):
            return value
    raise InvalidVariable(f"{name} is {written!r}: expected {expected}.")
