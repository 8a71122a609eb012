"""Translate images and files between the dialects' content parts, by way of those of the Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction.dialects.blocks import as_text
from compaction.messages import JSON


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
    return None


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
    """Return an image or file of any dialect as a part of Chat Completions; None for other blocks."""
    made = media_part(block)
    part = made or block
    match part.get("type"):
        case "input_image" if part.get("image_url"):
            detail = {"detail": part["detail"]} if part.get("detail") else {}
            return {"type": "image_url", "image_url": {"url": as_text(part["image_url"]), **detail}}
        case "input_file" if part.get("file_data") or part.get("file_id"):
            names = ("filename", "file_data", "file_id")
            return {"type": "file", "file": {name: part[name] for name in names if part.get(name)}}
        case "input_text" if made is not None:  # a document that consists of text
            return {"type": "text", "text": part["text"]}
    return None


def anthropic_media(block: Mapping[str, Any]) -> dict[str, JSON] | None:
    """Return an image or file of OpenAI as a block of Anthropic's Messages API; None for other parts."""
    part = chat_media(block) or {}
    url = as_text(part.get("image_url", {}).get("url") or part.get("file", {}).get("file_data"))
    if "image_url" in part and url.startswith(("http://", "https://")):
        return {"type": "image", "source": {"type": "url", "url": url}}
    head, comma, data = url.partition(";base64,")
    if not comma or not head.startswith("data:") or not data:
        return None
    source = {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
    return {"type": "image" if "image_url" in part else "document", "source": source}
