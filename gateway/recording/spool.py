"""Encrypted calls on disk, in the order in which they ended."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import zstandard
from cryptography.fernet import InvalidToken

from accounts.encryption import cipher
from gateway.calls import Call

log = logging.getLogger(__name__)

_PURPOSE = "gateway-spool"
_SUFFIX, _PARTIAL, _REJECTED = ".call", ".partial", ".rejected"

#: Days for which unreadable files are kept, in case the secret key that encrypted them is restored.
_REJECTED_DAYS = 30


class Spool:
    """A folder with one file per call. Only one process may use it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last = 0
        self._delete_leftovers()

    def _delete_leftovers(self) -> None:
        """Delete incomplete files of a gateway that was killed, and old unreadable ones."""
        oldest = time.time() - _REJECTED_DAYS * 86_400
        for file in (*self._folder.glob(f"*{_PARTIAL}"), *self._folder.glob(f"*{_REJECTED}")):
            with suppress(OSError):
                if file.suffix == _PARTIAL or file.stat().st_mtime < oldest:
                    file.unlink()

    def add(self, call: Call) -> None:
        """Store a call durably. Raises `OSError`."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        data = cipher(_PURPOSE).encrypt(zstandard.compress(call.pack()))
        partial = self._folder / f"{call.id}{_PARTIAL}"
        try:
            with partial.open("wb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.rename(self._folder / f"{self._next():020}-{call.id}{_SUFFIX}")
        except OSError:
            partial.unlink(missing_ok=True)
            raise

    def _next(self) -> int:
        """Return a larger number than that of any call in the folder, even if the clock was set back."""
        if not self._last:
            numbers = (file.name.partition("-")[0] for file in self._files())
            self._last = max(map(int, filter(str.isdecimal, numbers)), default=0)
        self._last = max(self._last + 1, time.time_ns())
        return self._last

    @property
    def is_empty(self) -> bool:
        return next(self._files(), None) is None

    def oldest(self) -> tuple[Path, Call] | None:
        """Return the oldest call and its file. Files that cannot be decrypted or read are set aside."""
        for file in sorted(self._files()):
            try:
                return file, Call.unpack(zstandard.decompress(cipher(_PURPOSE).decrypt(file.read_bytes())))
            except (InvalidToken, zstandard.ZstdError, ValueError, TypeError, KeyError) as error:
                kept = file.rename(file.with_suffix(_REJECTED))
                log.error("A call on disk cannot be read (%s): %s", type(error).__name__, kept)
        return None

    def remove(self, file: Path) -> None:
        file.unlink(missing_ok=True)

    def _files(self) -> Iterator[Path]:
        return self._folder.glob(f"*{_SUFFIX}")
