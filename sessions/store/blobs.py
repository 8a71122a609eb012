"""Object storage for large contents: Django's storage "blobs", if it is configured.

An object is named by the hash of its content, so writing it again changes nothing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage, storages
from django.db import OperationalError


class StorageUnavailable(OperationalError):
    """Object storage failed. Callers that retry when the database is unavailable also retry then."""


class BlobFolder(FileSystemStorage):
    """Storage in a folder with atomic writes. Django's own truncates files while they are being read."""

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


def blob_put(project_id: UUID, sha256: bytes, packed: bytes) -> None:
    """Write a blob. Raises `StorageUnavailable`."""
    try:
        storages["blobs"].save(blob_name(project_id, sha256), ContentFile(packed))
    except Exception as error:  # each storage has its own errors
        raise StorageUnavailable(str(error)) from error


def blob_get(project_id: UUID, sha256: bytes | memoryview) -> bytes:
    """Return the content of a blob. Raises `FileNotFoundError` or `StorageUnavailable`."""
    try:
        with storages["blobs"].open(blob_name(project_id, sha256)) as file:
            data: bytes = file.read()
            return data
    except FileNotFoundError:
        raise
    except Exception as error:
        raise StorageUnavailable(str(error)) from error


def blob_remove(names: Iterable[str]) -> None:
    """Delete blobs. Ignores those that do not exist."""
    for name in names:
        storages["blobs"].delete(name)
