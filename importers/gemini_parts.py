"""Gemini's content parts as OpenAI chat content."""

from __future__ import annotations

import json
from typing import Any

from .values import mapping_of, text_of


def chat_content(parts: Any) -> Any:
    """Return parts as chat content: a string if all are text, else a list. Thoughts are left out."""
    if isinstance(parts, str):
        return parts
    found: list[dict[str, Any]] = []
    for part in parts or []:
        if isinstance(part, str):
            found.append({"type": "text", "text": part})
        elif isinstance(part.get("text"), str) and not part.get("thought"):
            found.append({"type": "text", "text": part["text"]})
        elif data := mapping_of(part.get("inlineData")):
            url = f"data:{data.get('mimeType', '')};base64,{data.get('data', '')}"
            found.append({"type": "image_url", "image_url": {"url": url}})
    if all(part["type"] == "text" for part in found):
        return "\n".join(part["text"] for part in found)
    return found


def result_text(parts: Any) -> str:
    """Return the text of a tool's result: `output` or `error` of its response, else the response as JSON."""
    if isinstance(parts, str):
        return parts
    texts: list[str] = []
    for part in parts if isinstance(parts, list) else [parts]:
        response = mapping_of(mapping_of(part).get("functionResponse")).get("response")
        said = mapping_of(response)
        text = said.get("output", said.get("error"))
        if isinstance(text, str):
            texts.append(text)
        elif response is not None:
            texts.append(json.dumps(response, ensure_ascii=False))
        else:
            texts.append(text_of(chat_content([part])))
    return "\n".join(filter(None, texts))
