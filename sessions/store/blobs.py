"""Object storage for large contents: Django's storage "blobs", if it is configured.

An object is named by the hash of its content, so writing it again changes nothing. Reading verifies the hash.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage, storages
from django.db import OperationalError
from zstandard import ZstdError

from sessions.store import bodies

log = logging.getLogger(__name__)


class StorageUnavailable(OperationalError):
    """Object storage failed. Callers that retry when the database is unavailable also retry then."""


#: Roles of messages that may consist of text only, in every dialect.
_PLAIN_ROLES = ("system", "user", "assistant")


class ContentLost(Exception):
    """A large content is missing or damaged. The message is a sentence for users and models."""


class BlobFolder(FileSystemStorage):
    """Storage in a folder with atomic writes. Django's own truncates files while they are being read."""

    def open(self, name: str, mode: str = "rb") -> File[bytes]:
        # Contents are only deleted individually. Without their folder, the file system is not mounted.
        folder = Path(self.path(name)).parent
        if not folder.is_dir():
            raise NotADirectoryError(f"The folder {folder} does not exist.")
        return super().open(name, mode)

    def _save(self, name: str, content: File[bytes]) -> str:
        path = Path(self.path(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(content.chunks())
                file.flush()
                os.fsync(handle)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return name


def is_external() -> bool:
    """Return whether new large contents are written to object storage."""
    return "blobs" in settings.STORAGES


def blob_name(project_id: UUID, sha256: bytes | memoryview) -> str:
    return f"{project_id}/{bytes(sha256).hex()}"


def project_blobs(project_id: UUID) -> Iterable[str]:
    """Return the names of all blobs of a project, and that of its folder last."""
    folder = str(project_id)
    try:
        _, files = storages["blobs"].listdir(folder)
    except FileNotFoundError:
        return []
    return [*(f"{folder}/{file}" for file in files), folder]


def blob_put(project_id: UUID, sha256: bytes, packed: bytes) -> None:
    """Write a blob. Raises `StorageUnavailable`."""
    try:
        storages["blobs"].save(blob_name(project_id, sha256), ContentFile(packed))
    except Exception as error:  # each storage has its own errors
        raise StorageUnavailable(str(error)) from error


def blob_get(project_id: UUID, sha256: bytes | memoryview) -> bytes:
    """Return the JSON of a message in object storage. Raises `ContentLost` or `StorageUnavailable`."""
    try:
        with storages["blobs"].open(blob_name(project_id, sha256)) as file:
            packed: bytes = file.read()
    except FileNotFoundError:
        raise ContentLost("The content of this message is missing from object storage.") from None
    except Exception as error:
        raise StorageUnavailable(str(error)) from error
    try:
        data = bodies.unpack(packed)
    except (ZstdError, bodies.UnknownDictionary, MemoryError):  # a damaged header may indicate any size
        data = b""
    if hashlib.sha256(data).digest() != bytes(sha256):
        raise ContentLost("The content of this message is damaged in object storage.")
    return data


def body_read(
    data: bytes | memoryview | None, project_id: UUID, sha256: bytes | memoryview, role: str
) -> bytes:
    """Return the JSON of a message: `data` uncompressed, or if it is None, that of its blob.

    Returns a `bodies.Placeholder` if the content is lost, so that the rest of the session remains usable.
    Raises `StorageUnavailable`.
    """
    if data is not None:
        return bodies.unpack(data)
    try:
        return blob_get(project_id, sha256)
    except ContentLost as error:
        log.error("%s: %s", blob_name(project_id, sha256), error)
        message = {"role": role if role in _PLAIN_ROLES else "user", "content": f"[{error}]"}
        return bodies.Placeholder(bodies.json_bytes(message))


def blob_remove(names: Iterable[str]) -> None:
    """Delete blobs. Ignores those that do not exist."""
    for name in names:
        storages["blobs"].delete(name)
