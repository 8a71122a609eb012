"""The data folder of an instance: its database, keys, logs and lock."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from contextapp.embedded.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Maximum length of a Unix socket path: 108 bytes including the trailing zero on Linux, 104 on macOS and BSD.
SOCKET_PATH_LIMIT = 103
POSTGRES_FOLDER, POSTGRES_SOCKET = "postgres", ".s.PGSQL.5432"
VALKEY_SOCKET = "valkey.sock"
DATABASE = "contextapp"


def database_url(home: Path) -> str:
    """Return the URL of the embedded Postgres.

    Socket and port are explicit, so that PGHOST or PGPORT in the shell cannot override them.
    """
    return f"postgresql://{DATABASE}@/{DATABASE}?host={quote(str(postgres_sockets(home)))}&port=5432"


def broker_url(home: Path) -> str:
    """Return the URL of the embedded Valkey."""
    return f"redis+socket://{sockets(home) / VALKEY_SOCKET}"


def sockets(home: Path) -> Path:
    """Return the folder of the sockets: `run` in the data folder, or its target (see `make_sockets`)."""
    return (home / "run").resolve()


def postgres_sockets(home: Path) -> Path:
    """Return the folder of Postgres' socket. It belongs to the user of Postgres."""
    return sockets(home) / POSTGRES_FOLDER


def prepare(home: Path) -> None:
    """Create the missing parts of the data folder. Raises StartError."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        home.chmod(0o700)  # it may have existed: it contains keys, and a database that requires no password
        (home / "logs").mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            pass
        make_sockets(home)
        postgres_sockets(home).mkdir(exist_ok=True, mode=0o700)
        make_secret_key(home)
    except OSError as error:
        raise StartError(
            f"The data folder {home} cannot be used: {error.strerror}. "
            "Set CONTEXTAPP_HOME to a folder that you own."
        ) from error


def make_sockets(home: Path) -> None:
    """Create the folder of the sockets.

    If its path is too long for a socket, `run` becomes a link to a folder with a short path, so that every
    process of the instance finds it.
    """
    run = home / "run"
    if run.is_symlink():
        if is_private(run.resolve()):
            return
        run.unlink()
    if len(os.fsencode(run / POSTGRES_FOLDER / POSTGRES_SOCKET)) <= SOCKET_PATH_LIMIT:
        run.mkdir(exist_ok=True, mode=0o700)
        return
    if run.is_dir():
        shutil.rmtree(run)
    run.symlink_to(make_short_folder())


def is_private(folder: Path) -> bool:
    """Return whether the folder exists, belongs to this user and is inaccessible to others.

    The system cleans up temporary folders, and another user may then create one with the same name.
    """
    try:
        status = folder.lstat()
    except OSError:
        return False
    return folder.is_dir() and status.st_uid == os.geteuid() and status.st_mode & 0o077 == 0


def make_short_folder() -> Path:
    parents = (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp")  # noqa: S108
    for parent in filter(None, parents):
        if len(os.fsencode(parent)) + 48 <= SOCKET_PATH_LIMIT and os.access(parent, os.W_OK):
            return Path(tempfile.mkdtemp(prefix="contextapp-", dir=parent))
    raise StartError("All paths are too long for a Unix socket. Set CONTEXTAPP_HOME to a shorter path.")


def make_secret_key(home: Path) -> None:
    """Create the key that signs cookies, unless it exists."""
    if not (home / "secret-key").exists():
        write_private(home / "secret-key", secrets.token_urlsafe(48))


def write_private(file: Path, text: str) -> None:
    """Write a file atomically that only its owner can read."""
    descriptor, name = tempfile.mkstemp(dir=file.parent)  # mode 600
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text + "\n")
    Path(name).replace(file)


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Lock the data folder. The system releases the lock when the process ends, even if it is killed."""
    with (home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StartError(
                f"Another instance is running in {home}. Stop it, or set CONTEXTAPP_HOME and CONTEXTAPP_PORT "
                "to start a second one."
            ) from error
        yield
