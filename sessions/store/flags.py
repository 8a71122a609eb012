"""The flags of a message."""

from __future__ import annotations

from django.db.models import IntegerChoices


class MessageFlag(IntegerChoices):
    """Bits of `Message.flags`."""

    ERROR = 1, "a tool reported an error"
    META = 2, "inserted by the client"
    CLIENT_SUMMARY = 4, "the client's summary of messages that it compacted"
    PINNED = 8, "never edited"
