"""Translate images and files between the dialects' content parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction.dialects.blocks import as_text
from compaction.messages import JSON


def media_part(block: Mapping[str, Any]) -> dict[str, JSON] | None:
    """Return the part for an image or file of another dialect; None for other blocks."""
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
    """Return an image or file of this dialect as a content part of Chat Completions."""
    if block.get("type") == "input_image" and block.get("image_url"):
        detail = {"detail": block["detail"]} if block.get("detail") else {}
        return {"type": "image_url", "image_url": {"url": as_text(block["image_url"]), **detail}}
    if block.get("type") == "input_file" and (block.get("file_data") or block.get("file_id")):
        names = ("filename", "file_data", "file_id")
        return {"type": "file", "file": {name: block[name] for name in names if block.get(name)}}
    return None
