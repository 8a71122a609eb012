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
    storages["blobs"].save(blob_name(project_id, sha256), ContentFile(packed))


def blob_get(project_id: UUID, sha256: bytes | memoryview) -> bytes:
    """Return the content of a blob. Raises the storage's errors, such as `FileNotFoundError`."""
    with storages["blobs"].open(blob_name(project_id, sha256)) as file:
        data: bytes = file.read()
        return data


def blob_remove(names: Iterable[str]) -> None:
    """Delete blobs. Ignores those that do not exist."""
    for name in names:
        storages["blobs"].delete(name)
