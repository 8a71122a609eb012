"""Django's command line, which reports an unreachable database in one line."""

from __future__ import annotations

import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.db import OperationalError, connection

from contextapp import env

#: Messages of PostgreSQL's client if no server listens on the address or socket.
_NO_SERVER = ("refused", "No such file or directory")


def main() -> None:
    """Run the command in `sys.argv`."""
    try:
        execute_from_command_line(sys.argv)
    except OperationalError as error:
        if connection.connection is not None:
            raise
        raise SystemExit(_message(str(error))) from None


def _message(error: str) -> str:
    reason = error.strip().partition("\n")[0]
    if not any(text in error for text in _NO_SERVER):
        return f"contextapp: cannot connect to the database: {reason}"
    if env.text("DATABASE_URL"):
        return "contextapp is not running: the database in DATABASE_URL does not accept connections."
    return (
        f"contextapp is not running in {settings.HOME}. Start it with `make run`,"
        " or set CONTEXTAPP_HOME and DATABASE_URL as for the running instance."
    )
