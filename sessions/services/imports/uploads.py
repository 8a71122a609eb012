"""Keep an uploaded log in the database until it is imported, so that every worker can read it.

The log is not redacted yet. Therefore its parts are encrypted, and deleted when the job ends.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from typing import Protocol

import zstandard

from accounts.encryption import cipher
from sessions.models import ImportJob, ImportPart

_PURPOSE = "import-upload"

#: Bytes of the log in one part. Only a part is in memory while an upload is stored.
PART_BYTES = 1 << 20


class Readable(Protocol):
    """A file, or the body of a request."""

    def read(self, size: int, /) -> bytes: ...


def upload_store(job: ImportJob, file: Readable) -> str:
    """Store the rest of a file as the job's upload, and set the job's `size`. Returns its SHA-256."""
    digest, number = hashlib.sha256(), 0
    while data := file.read(PART_BYTES):
        digest.update(data)
        packed = cipher(_PURPOSE).encrypt(zstandard.compress(data))
        ImportPart.objects.create(job=job, number=number, data=packed)
        number, job.size = number + 1, job.size + len(data)
    return digest.hexdigest()


def upload_read(job: ImportJob) -> bytes:
    """Return the uploaded log. Raises `cryptography.fernet.InvalidToken` if the secret key has changed."""
    whole = io.BytesIO()
    for part in _parts(job):
        whole.write(zstandard.decompress(cipher(_PURPOSE).decrypt(part)))
    return whole.getvalue()


def upload_delete(job: ImportJob) -> None:
    """Delete the upload of a job that has ended."""
    ImportPart.objects.filter(job=job).delete()


def _parts(job: ImportJob) -> Iterator[bytes]:
    rows = ImportPart.objects.filter(job=job).order_by("number").values_list("data", flat=True)
    return map(bytes, rows.iterator(chunk_size=4))
