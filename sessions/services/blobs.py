"""Keep large contents in object storage consistent with their rows.

Object storage has no transactions. An object is written before its row, and deleted after its row. A Postgres
advisory lock on the content prevents a deletion from removing an object that a push has written, but not
committed yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from django.db import connection, transaction

from sessions.models import Blob
from sessions.services.commits import after_commit
from sessions.services.ingestion import IngestedMessage
from sessions.store import bodies
from sessions.store.blobs import (
    StorageUnavailable,
    blob_name,
    blob_put,
    blob_remove,
    is_external,
    project_blobs,
)

_DELETE_MESSAGES = """
WITH deleted AS (
    DELETE FROM agent_sessions_message WHERE session_id = %(session)s AND turn_index >= %(turn)s
    RETURNING blob_id)
SELECT DISTINCT blob_id FROM deleted WHERE blob_id IS NOT NULL
"""

# A concurrent push of the same content locks the blob's row by its ON CONFLICT DO UPDATE; SKIP LOCKED keeps
# that blob.
_DELETE_BLOBS = """
DELETE FROM agent_sessions_blob WHERE id IN (
    SELECT b.id FROM agent_sessions_blob b
     WHERE b.id = ANY(%(blobs)s)
       AND NOT EXISTS (SELECT 1 FROM agent_sessions_message m WHERE m.blob_id = b.id)
       FOR UPDATE SKIP LOCKED)
RETURNING sha256
"""


def contents_large(messages: Iterable[IngestedMessage]) -> dict[bytes, bytes]:
    """Return the contents that are stored in a blob, by SHA-256."""
    return {message.sha256: message.data for message in messages if message.is_large}


def contents_put(project_id: UUID, large: Mapping[bytes, bytes]) -> None:
    """Write contents to object storage, within the transaction that will write their rows.

    If it is rolled back, the objects remain without rows; a retry uses them.
    """
    keys = [_lock_key(sha256) for sha256 in large]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(key) FROM unnest(%s::bigint[]) AS key", [keys])
    for sha256, data in large.items():
        blob_put(project_id, sha256, bodies.pack(data))


def contents_remove(project_id: UUID, digests: Iterable[bytes]) -> None:
    """Delete contents whose rows were deleted and committed, unless they have a row again."""
    for sha256 in digests:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_lock_key(sha256)])
            if not Blob.objects.filter(project_id=project_id, sha256=sha256).exists():
                blob_remove([blob_name(project_id, sha256)])


def project_contents_remove(project_id: UUID) -> None:
    """Delete the contents of a project, with those whose rows were never committed.

    Raises `StorageUnavailable`.
    """
    if not is_external():
        return
    try:
        blob_remove(project_blobs(project_id))
    except Exception as error:  # each storage has its own errors
        raise StorageUnavailable(str(error)) from error


def messages_delete(session_id: UUID, *, first_turn: int = 0) -> Sequence[UUID]:
    """Delete the messages of a session from a turn on. Return the ids of the blobs that contained them."""
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_MESSAGES, {"session": session_id, "turn": first_turn})
        return [blob_id for (blob_id,) in cursor.fetchall()]


def blobs_remove(project_id: UUID, ids: Sequence[UUID]) -> None:
    """Delete those of the blobs that no message uses."""
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_BLOBS, {"blobs": list(ids)})
        digests = [bytes(sha256) for (sha256,) in cursor.fetchall()]
    if is_external():
        # If object storage fails, unused objects remain in it; the rows are deleted regardless.
        after_commit(contents_remove, project_id, digests)


def _lock_key(sha256: bytes) -> int:
    return int.from_bytes(sha256[:8], "big", signed=True)
