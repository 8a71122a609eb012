"""Large contents in a store beside Postgres, in step with their rows.

The store knows no transactions. An object is put before its row, and removed after its row is gone. Between
the two a lock of Postgres' on the content keeps a deletion from removing what a push has just put and not
yet committed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from uuid import UUID

from django.db import connection, transaction

from sessions.models import Blob
from sessions.store import bodies
from sessions.store.blobs import blob_name, blob_put, blob_remove


def contents_large(contents: Iterable[bytes]) -> dict[bytes, bytes]:
    """Those of the contents that go to a blob, by SHA-256."""
    return {hashlib.sha256(data).digest(): data for data in contents if len(data) > bodies.BLOB_BYTES}


def contents_put(project_id: UUID, large: Mapping[bytes, bytes]) -> None:
    """Puts contents into the store, within the transaction that will write their rows.

    Where that one is rolled back they stay without a row, for the retry to use.
    """
    keys = [_lock_key(sha256) for sha256 in large]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(key) FROM unnest(%s::bigint[]) AS key", [keys])
    for sha256, data in large.items():
        blob_put(project_id, sha256, bodies.pack(data))


def contents_remove(project_id: UUID, digests: Iterable[bytes]) -> None:
    """Removes contents whose rows are deleted and committed, save those that have a row again."""
    for sha256 in digests:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_lock_key(sha256)])
            if not Blob.objects.filter(project_id=project_id, sha256=sha256).exists():
                blob_remove([blob_name(project_id, sha256)])


def _lock_key(sha256: bytes) -> int:
    return int.from_bytes(sha256[:8], "big", signed=True)
