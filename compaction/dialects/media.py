"""Translate images and files between the dialects' content parts, by way of those of the Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction.dialects.blocks import as_text, google_media
from compaction.messages import JSON

#: Addresses of the files that Google stores for Gemini.
_GOOGLE_FILES = "https://generativelanguage.googleapis.com/"


def media_part(block: Mapping[str, Any]) -> dict[str, JSON] | None:
    """Return an image or file of another dialect as a part of the Responses API; None for other blocks."""
    match block.get("type"):
        case "image_url":
            return _image(block.get("image_url"))
        case "file":
            file = block.get("file")
            return {"type": "input_file", **file} if isinstance(file, Mapping) else None
        case "image" | "document":
            return _from_source(block)
    return _from_google(block)


def _from_google(part: Mapping[str, Any]) -> dict[str, JSON] | None:
    """Return the part for media in a part of Gemini. Only Google can read the files that it stores."""
    media = google_media(part) or {}
    kind, is_image = media.get("mime_type", ""), media.get("mime_type", "").startswith("image/")
    if data := media.get("data"):
        url = f"data:{kind};base64,{data}"
        return (
            {"type": "input_image", "image_url": url}
            if is_image
            else {"type": "input_file", "filename": f"file.{kind.rpartition('/')[2]}", "file_data": url}
        )
    uri = media.get("uri", "")
    if not uri.startswith(("http://", "https://")) or uri.startswith(_GOOGLE_FILES):
        return None
    return {"type": "input_image", "image_url": uri} if is_image else {"type": "input_file", "file_url": uri}


def gemini_media(block: Mapping[str, Any]) -> dict[str, JSON] | None:
    """Return an image or file of another dialect as a part of Gemini; None for other blocks."""
    part = media_part(block) or block
    if part.get("type") == "input_text" and part is not block:  # a document that consists of text
        return {"text": as_text(part.get("text"))}
    if part.get("type") not in ("input_image", "input_file"):
        return None
    url = as_text(part.get("image_url") or part.get("file_data") or part.get("file_url"))
    head, comma, data = url.partition(";base64,")
    if comma and head.startswith("data:") and data:
        return {"inlineData": {"mimeType": head.removeprefix("data:"), "data": data}}
    if url.startswith(("http://", "https://")):
        is_image = part["type"] == "input_image"
        return {"fileData": {"fileUri": url, "mimeType": "image/*" if is_image else "application/pdf"}}
    return None


def result_blocks(source: JSON) -> list[Mapping[str, Any]]:
    """Return the content blocks in the JSON of a tool result of any dialect."""
    given = source if isinstance(source, Mapping) else {}
    content = given.get("content", given.get("output"))
    if not isinstance(content, list):
        response = given.get("functionResponse", given.get("function_response"))
        content = response.get("parts") if isinstance(response, Mapping) else None
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def _image(value: JSON) -> dict[str, JSON] | None:
    if isinstance(value, str):
        return {"type": "input_image", "image_url": value}
    if not isinstance(value, Mapping) or not value.get("url"):
        return None
    detail = {"detail": value["detail"]} if value.get("detail") else {}
    return {"type": "input_image", "image_url": value["url"], **detail}


def _from_source(block: Mapping[str, Any]) -> dict[str, JSON] | None:
    """Return the part for Anthropic's image or document."""
    source = block.get("source")
    if not isinstance(source, Mapping):
        return None
    data = f"data:{source.get('media_type')};base64,{source.get('data')}"
    match block.get("type"), source.get("type"):
        case "image", "base64":
            return {"type": "input_image", "image_url": data}
        case "image", "url":
            return {"type": "input_image", "image_url": as_text(source.get("url"))}
        case "document", "base64":
            name = as_text(block.get("title")) or "document.pdf"
            return {"type": "input_file", "filename": name, "file_data": data}
        case "document", "url":
            return {"type": "input_file", "file_url": as_text(source.get("url"))}
        case "document", "text":
            return {"type": "input_text", "text": as_text(source.get("data"))}
    return None


def chat_media(block: Mapping[str, Any]) -> dict[str, JSON] | None:
    """Return an image, audio or file of any dialect as a part of Chat Completions; None for other blocks."""
    made = media_part(block)
    part = made or block
    match part.get("type"):
        case "input_image" if part.get("image_url"):
            detail = {"detail": part["detail"]} if part.get("detail") else {}
            return {"type": "image_url", "image_url": {"url": as_text(part["image_url"]), **detail}}
        case "input_file" if part.get("file_data") or part.get("file_id"):
            names = ("filename", "file_data", "file_id")
            return {"type": "file", "file": {name: part[name] for name in names if part.get(name)}}
        case "input_audio" if isinstance(part.get("input_audio"), Mapping):
            return {"type": "input_audio", "input_audio": part["input_audio"]}
        case "input_text" if made is not None:  # a document that consists of text
            return {"type": "text", "text": part["text"]}
    return None


def anthropic_media(block: Mapping[str, Any]) -> dict[str, JSON] | None:
    """Return an image or PDF of OpenAI as a block of Anthropic's Messages API; None for other parts."""
    part = chat_media(block) or {}
    url = as_text(part.get("image_url", {}).get("url") or part.get("file", {}).get("file_data"))
    if "image_url" in part and url.startswith(("http://", "https://")):
        return {"type": "image", "source": {"type": "url", "url": url}}
    head, comma, data = url.partition(";base64,")
    if not comma or not head.startswith("data:") or not data:
        return None
    source = {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
    if "image_url" in part:
        return {"type": "image", "source": source}
    return {"type": "document", "source": source} if source["media_type"] == "application/pdf" else None
