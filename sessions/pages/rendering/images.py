"""Images in messages. Only formats that browsers display, and only if the data has that format."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: The first bytes of each format.
_MAGIC = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
_DATA_URL = re.compile(r"data:(image/[a-z]+);base64,", re.IGNORECASE)
#: Nesting of content blocks: an image in a tool output in a message.
_MAX_DEPTH = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image: its media type and its content in base64."""

    media_type: str
    encoded: str

    @property
    def data(self) -> bytes:
        return base64.b64decode(self.encoded)


def images_of(source: Any) -> list[Image]:
    """Return the images in the JSON of a message part, in order."""
    return [image for image in _found(source, 0) if _is_valid(image)]


def _found(source: Any, depth: int) -> Iterator[Image]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(source, list):
        for item in source:
            yield from _found(item, depth + 1)
    elif isinstance(source, dict):
        names = (source.get(name) for name in ("media_type", "mimeType", "mime_type"))
        media_type, data = next(filter(None, names), None), source.get("data")
        if isinstance(media_type, str) and isinstance(data, str):
            yield Image(media_type=media_type.lower(), encoded=data)
            return
        for value in source.values():
            yield from _found(value, depth + 1)
    elif isinstance(source, str) and (match := _DATA_URL.match(source)):
        yield Image(media_type=match[1].lower(), encoded=source[match.end() :])


def _is_valid(image: Image) -> bool:
    try:
        start = base64.b64decode(image.encoded[:32], validate=True)
    except (binascii.Error, ValueError):
        return False
    return start.startswith(_MAGIC.get(image.media_type, ()))
