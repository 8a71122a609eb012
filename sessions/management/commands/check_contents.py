"""Check that object storage contains every large message, undamaged."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from sessions.models import Blob, Message
from sessions.store.blobs import ContentLost, StorageUnavailable, blob_get, blob_name

#: Rows read at a time.
_BATCH = 1_000


class Command(BaseCommand):
    help = "Read all objects in object storage, and list the messages whose content is missing or damaged."

    def handle(self, **options: Any) -> None:
        blobs = Blob.objects.filter(data=None).order_by("pk")
        checked = lost = 0
        batch = list(blobs[:_BATCH])
        while batch:
            for blob in batch:
                checked += 1
                try:
                    blob_get(blob.project_id, blob.sha256)
                except ContentLost as error:
                    lost += 1
                    self._list_messages(blob, error)
                except StorageUnavailable as error:
                    raise CommandError(f"The object storage is unavailable: {error}") from None
            batch = list(blobs.filter(pk__gt=batch[-1].pk)[:_BATCH])
        if lost:
            raise CommandError(f"{lost:,} of {checked:,} objects are missing or damaged.")
        self.stdout.write(f"Checked {checked:,} objects. None is missing or damaged.")

    def _list_messages(self, blob: Blob, error: ContentLost) -> None:
        rows = Message.objects.filter(blob=blob).select_related("session__project")
        for row in rows.order_by("session_id", "position"):
            place = f"project {row.session.project.slug}, session {row.session.external_id or row.session.pk}"
            self.stdout.write(f"{place}, message {row.position} ({blob.size:,} bytes): {error}")
        self.stdout.write(f"  object: {blob_name(blob.project_id, blob.sha256)}")
