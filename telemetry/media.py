"""Images, audio and other files in the parts of messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction.dialects.blocks import note_of
from compaction.dialects.media import chat_media

JSON = dict[str, Any]

#: Media types of the audio that Chat Completions accepts, with the names that it has for them.
AUDIO_FORMATS = {"audio/wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}

#: Kinds of parts with inline data and its media type: those of Pydantic AI and of results of MCP tools. The
#: kind of the conventions may have no media type.
_INLINE, _BLOB = frozenset({"binary", "image", "audio"}), "blob"

#: Kinds of parts with a URL: that of the conventions, and those of Pydantic AI.
_LINKED = frozenset({"uri", "image-url", "audio-url", "video-url", "document-url"})

#: Media types of data without one, by modality.
_MEDIA_TYPES = {
    "image": "image/png",
    "audio": "audio/wav",
    "video": "video/mp4",
    "document": "application/pdf",
}


def chat_part(part: Mapping[str, Any]) -> JSON | None:
    """Return an image, audio or file as a part of Chat Completions.

    Returns None for other parts, and for the URL of anything but an image, which the API does not accept.
    """
    if (own := chat_media(part)) is not None:
        return own
    url, kind = _url(part), _modality(part)
    if kind == "image" and url:
        return {"type": "image_url", "image_url": {"url": url}}
    head, _, data = url.partition(";base64,")
    if not data or not head.startswith("data:"):
        return None
    media_type = head.removeprefix("data:")
    if media_type in AUDIO_FORMATS:
        return {"type": "input_audio", "input_audio": {"data": data, "format": AUDIO_FORMATS[media_type]}}
    name = "document.pdf" if kind == "document" else f"file.{media_type.rpartition('/')[2]}"
    return {"type": "file", "file": {"filename": name, "file_data": url}}


def media_note(part: Mapping[str, Any]) -> str | None:
    """Return a note in place of inline data, for an API without such media; None for other parts."""
    if chat_media(part) is not None:
        return note_of(part, str(part.get("type")))
    return note_of(part, _modality(part)) if _data(part) else None


def _url(part: Mapping[str, Any]) -> str:
    """Return the URL of a part, which contains inline data; "" if the part has neither."""
    if data := _data(part):
        return f"data:{_media_type(part) or _MEDIA_TYPES.get(_modality(part), '')};base64,{data}"
    url = part.get("uri", part.get("url")) if _kind(part) in _LINKED else None
    return url if isinstance(url, str) else ""


def _data(part: Mapping[str, Any]) -> str:
    data, kind = part.get("content", part.get("data")), _kind(part)
    is_inline = kind == _BLOB or (kind in _INLINE and _media_type(part))
    return data if is_inline and isinstance(data, str) else ""


def _kind(part: Mapping[str, Any]) -> str:
    kind = part.get("type", part.get("kind"))
    return kind if isinstance(kind, str) else ""


def _media_type(part: Mapping[str, Any]) -> str:
    names = ("mime_type", "media_type", "mimeType", "mediaType")
    return next((found for name in names if isinstance(found := part.get(name), str)), "")


def _modality(part: Mapping[str, Any]) -> str:
    """Return `image`, `audio`, `video` or `document`. Parts that specify nothing are images."""
    if isinstance(given := part.get("modality"), str):
        return given
    kind = _media_type(part).partition("/")[0] or _kind(part).partition("-")[0]
    if kind in _MEDIA_TYPES:
        return kind
    return "document" if _media_type(part) else "image"
