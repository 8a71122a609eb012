"""What both formats need: ids that a provider accepts, media in either spelling, our notes in text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from compaction.jsontext import dumps
from compaction.messages import JSON, Message, Opaque, Role, Text
from compaction.tokens import IMAGE_TOKENS

#: Anthropic's pattern for tool call ids; OpenAI refuses ids of more than 40 characters.
_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
_NOT_ID = re.compile(r"[^a-zA-Z0-9_-]")
MAX_ID = 40

#: A PDF costs some 2,000 tokens a page, and a page some 100 KB of base64.
_DOCUMENT_CHARACTERS_PER_TOKEN = 50

#: Blocks of a kind that the other format does not know are told as text, up to so many characters.
_MAX_NOTE = 2_000


def is_safe_id(call_id: str) -> bool:
    """Whether Anthropic takes this id."""
    return _ID.match(call_id) is not None


def safe_id(call_id: str) -> str:
    """An id that Anthropic takes, the same one for the same `call_id` always."""
    return call_id if is_safe_id(call_id) else _digested(call_id)


def short_id(call_id: str) -> str:
    """An id that OpenAI takes, the same one for the same `call_id` always."""
    return call_id if len(call_id) <= MAX_ID else _digested(call_id)


def _digested(call_id: str) -> str:
    digest = hashlib.sha256(call_id.encode(errors="surrogatepass")).hexdigest()[:12]
    return f"{_NOT_ID.sub('_', call_id)[:24]}_{digest}"


def as_text(value: JSON) -> str:
    """Any JSON value as the text that a model would read."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value)


def stray(item: JSON, *, format: str, position: int, turn: int, tokens: int, pinned: bool) -> Message:
    """The message that stands for an item which is no object: a user's, with the item as text."""
    return Message(
        position=position,
        turn=turn,
        tokens=tokens,
        pinned=pinned,
        role=Role.USER,
        parts=(Text(text=as_text(item)),),
        format=format,
        source={},
        patched=True,
    )


def media_tokens(block: Mapping[str, Any]) -> int:
    """Estimated tokens of an image or document block in either format; 0 for other kinds."""
    kind = block.get("type")
    if kind in ("image", "image_url", "input_image"):
        return IMAGE_TOKENS
    if kind in ("document", "file", "input_audio"):
        return max(IMAGE_TOKENS, len(dumps(block)) // _DOCUMENT_CHARACTERS_PER_TOKEN)
    return 0


def opaque(block: Mapping[str, Any]) -> Opaque:
    kind = block.get("type")
    return Opaque(kind=kind if isinstance(kind, str) else "", media_tokens=media_tokens(block), source=block)


def note_of(block: JSON, kind: str) -> str:
    """What we say in text about a block that the other format cannot carry."""
    told = dumps(block)
    return f"[{kind or 'unknown'} block]" + (f" {told}" if len(told) <= _MAX_NOTE else "")


def text_of(block: Mapping[str, Any]) -> str | None:
    """The words of a text block, None where it is none."""
    words = block.get("text")
    if block.get("type") in ("text", "input_text", "output_text", None) and isinstance(words, str):
        return words
    return None


def joined_text(content: JSON) -> tuple[str, int]:
    """Text of a content value (string, blocks, anything) and the tokens of the media in it."""
    if not isinstance(content, list):
        return as_text(content), 0
    words: list[str] = []
    media = 0
    for block in content:
        if not isinstance(block, Mapping):
            words.append(as_text(block))
            continue
        tokens = media_tokens(block)
        media += tokens
        text = text_of(block)
        if text is not None:
            words.append(text)
        elif not tokens:
            words.append(dumps(block))
    return "\n".join(words), media


def to_image_url(block: Mapping[str, Any]) -> dict[str, JSON] | None:
    """OpenAI's part for an Anthropic image or document; None where there is none."""
    source = block.get("source")
    if not isinstance(source, Mapping):
        return None
    data = f"data:{source.get('media_type')};base64,{source.get('data')}"
    match block.get("type"), source.get("type"):
        case "image", "base64":
            return {"type": "image_url", "image_url": {"url": data}}
        case "image", "url":
            return {"type": "image_url", "image_url": {"url": source.get("url")}}
        case "document", "base64":
            name = as_text(block.get("title")) or "document.pdf"
            return {"type": "file", "file": {"filename": name, "file_data": data}}
        case "document", "text":
            return {"type": "text", "text": as_text(source.get("data"))}
    return None


def from_image_url(block: Mapping[str, Any]) -> dict[str, JSON] | None:
    """Anthropic's block for an OpenAI image or file part; None where there is none."""
    kind = block.get("type")
    held = block.get("image_url" if kind == "image_url" else "file")
    url = held if isinstance(held, str) else ""
    if isinstance(held, Mapping):
        url = as_text(held.get("url") or held.get("file_data"))
    if kind == "image_url" and url.startswith(("http://", "https://")):
        return {"type": "image", "source": {"type": "url", "url": url}}
    head, comma, data = url.partition(";base64,")
    if not comma or not head.startswith("data:") or not data:
        return None
    source = {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
    return {"type": "image" if kind == "image_url" else "document", "source": source}
