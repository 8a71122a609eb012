"""The data folder: where an instance keeps its database, its keys and its logs, and who holds it."""

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

# The longest address of a unix socket: 108 bytes with the closing zero on Linux, 104 on macOS and BSD.
SOCKET_PATH_LIMIT = 103
POSTGRES_SOCKET = ".s.PGSQL.5432"
VALKEY_SOCKET = "valkey.sock"
DATABASE = "contextapp"


def database_url(home: Path) -> str:
    """The embedded Postgres of the instance in `home`.

    Socket and port are spelled out, so that a PGHOST or PGPORT of the shell cannot lead elsewhere.
    """
    return f"postgresql://{DATABASE}@/{DATABASE}?host={quote(str(sockets(home)))}&port=5432"


def broker_url(home: Path) -> str:
    """The embedded Valkey of the instance in `home`."""
    return f"redis+socket://{sockets(home) / VALKEY_SOCKET}"


def sockets(home: Path) -> Path:
    """The folder of the sockets: `run` in the data folder, or what `run` points at (see `make_sockets`)."""
    return (home / "run").resolve()


def prepare(home: Path) -> None:
    """Make the data folder with its parts, or say why that cannot be. Safe to call at every start."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        (home / "logs").mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            pass
        make_sockets(home)
        make_secret_key(home)
    except OSError as error:
        raise StartError(
            f"The data folder {home} cannot be used: {error.strerror}. "
            "Set CONTEXTAPP_HOME to a folder of yours."
        ) from error


def make_sockets(home: Path) -> None:
    """Make the folder of the sockets. Where its path is too long for a socket, `run` becomes a link to a
    short one, so that every process of the instance finds it without being told."""
    run = home / "run"
    if run.is_symlink():
        if is_private(run.resolve()):
            return
        run.unlink()
    if len(os.fsencode(run / POSTGRES_SOCKET)) <= SOCKET_PATH_LIMIT:
        run.mkdir(exist_ok=True, mode=0o700)
        return
    if run.is_dir():
        shutil.rmtree(run)
    run.symlink_to(make_short_folder())


def is_private(folder: Path) -> bool:
    """Whether the folder is there, is ours and is closed to others: a temporary folder is swept now and
    then, and its name may since have been taken by somebody else."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return folder.is_dir() and status.st_uid == os.geteuid() and status.st_mode & 0o077 == 0


def make_short_folder() -> Path:
    parents = (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp")  # noqa: S108
    for parent in filter(None, parents):
        if len(os.fsencode(parent)) + 40 <= SOCKET_PATH_LIMIT and os.access(parent, os.W_OK):
            return Path(tempfile.mkdtemp(prefix="contextapp-", dir=parent))
    raise StartError("No folder is short enough for a unix socket. Set CONTEXTAPP_HOME to a shorter path.")


def make_secret_key(home: Path) -> None:
    """Write the key that signs cookies, once for the life of the data folder."""
    if not (home / "secret-key").exists():
        write_private(home / "secret-key", secrets.token_urlsafe(48))


def write_private(file: Path, text: str) -> None:
    """Write a line that only the owner may read; whole or not at all."""
    descriptor, name = tempfile.mkstemp(dir=file.parent)  # mode 600
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text + "\n")
    Path(name).replace(file)


@contextmanager
def held(home: Path) -> Iterator[None]:
    """Hold the data folder for this process. The system lets go of it however the process ends."""
    with (home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StartError(
                f"Another instance runs in {home}. Stop it, or set CONTEXTAPP_HOME and CONTEXTAPP_PORT "
                "for a second one."
            ) from error
        yield
