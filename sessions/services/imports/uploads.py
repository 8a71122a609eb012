"""Keep an uploaded log in the database until it is imported, so that every worker can continue the import.

First, there are parts of the file. When it has been read, steps replace them: the turns of its sessions. Both
contain unredacted text. Therefore they are encrypted, and deleted after the import.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import zstandard

from accounts.encryption import cipher
from importers.base import ImportedSession
from sessions.models import ImportJob, ImportPart, ImportStep

_PURPOSE = "import-upload"

#: Bytes of the log in one part. Only a part is in memory while an upload is stored.
PART_BYTES = 1 << 20

#: Messages of one step, which takes a worker a second or two.
STEP_MESSAGES = 2_000

#: Steps, and about how many bytes of them, that are written in one statement.
_BATCH, _BATCH_BYTES = 50, 4 << 20


class Readable(Protocol):
    """A file, or the body of a request."""

    def read(self, size: int, /) -> bytes: ...


def upload_store(job: ImportJob, file: Readable) -> str:
    """Store the rest of a file as the job's upload, and set the job's `size`. Returns its SHA-256."""
    digest, number = hashlib.sha256(), 0
    while data := file.read(PART_BYTES):
        digest.update(data)
        ImportPart.objects.create(job=job, number=number, data=_sealed(data))
        number, job.size = number + 1, job.size + len(data)
    return digest.hexdigest()


def upload_read(job: ImportJob) -> bytes:
    """Return the uploaded log. Raises `cryptography.fernet.InvalidToken` if the secret key has changed."""
    whole = io.BytesIO()
    for number in job.parts.order_by("number").values_list("number", flat=True):
        whole.write(_opened(job.parts.values_list("data", flat=True).get(number=number)))
    return whole.getvalue()


def upload_delete(job: ImportJob) -> None:
    """Delete everything that is not imported yet."""
    ImportPart.objects.filter(job=job).delete()
    ImportStep.objects.filter(job=job).delete()


def steps_store(job: ImportJob, sessions: Sequence[ImportedSession]) -> Sequence[ImportedSession]:
    """Replace the job's upload by the steps of its sessions. Call it in a transaction.

    Returns the sessions that cannot be stored, because their JSON is nested too deeply.
    """
    ImportPart.objects.filter(job=job).delete()
    refused, rows = [], []
    for ordinal, session in enumerate(sessions):
        try:
            for row in _steps(job, ordinal, session):
                rows.append(row)
                if len(rows) >= _BATCH or sum(len(each.data) for each in rows) >= _BATCH_BYTES:
                    ImportStep.objects.bulk_create(rows)
                    rows.clear()
        except RecursionError:
            refused.append(session)
            rows = [row for row in rows if row.ordinal != ordinal]
            ImportStep.objects.filter(job=job, ordinal=ordinal).delete()
    ImportStep.objects.bulk_create(rows)
    return refused


def step_read(step: ImportStep) -> ImportedSession:
    """Return the session with only the turns of the step."""
    session = pickle.loads(_opened(step.data))  # noqa: S301 (encrypted and authenticated by this server)
    assert isinstance(session, ImportedSession)
    return session


def session_read(step: ImportStep) -> ImportedSession:
    """Return the whole session to which the step belongs."""
    steps = ImportStep.objects.filter(job=step.job_id, ordinal=step.ordinal).order_by("first_turn")
    parts = [step_read(each) for each in steps]
    return replace(parts[0], turns=[turn for part in parts for turn in part.turns])


def _steps(job: ImportJob, ordinal: int, session: ImportedSession) -> Iterator[ImportStep]:
    turns, first = session.turns, 0
    while True:
        end = _step_end(session, first)
        part = replace(session, turns=turns[first:end])
        data = _sealed(pickle.dumps(part, protocol=5))
        is_last = end == len(turns)
        yield ImportStep(job=job, ordinal=ordinal, first_turn=first, is_last=is_last, data=data)
        if is_last:
            return
        first = end


def _step_end(session: ImportedSession, first: int) -> int:
    count = 0
    for index in range(first, len(session.turns)):
        count += len(session.turns[index].messages)
        if count >= STEP_MESSAGES:
            return index + 1
    return len(session.turns)


def _sealed(data: bytes) -> bytes:
    return cipher(_PURPOSE).encrypt(zstandard.compress(data))


def _opened(data: bytes | memoryview) -> bytes:
    return zstandard.decompress(cipher(_PURPOSE).decrypt(bytes(data)))
