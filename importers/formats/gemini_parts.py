"""Gemini's content parts and calls as OpenAI chat messages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from importers.chat import tool_call
from importers.values import mapping_of, text_of


def answer_body(content: Any, calls: Sequence[Mapping[str, Any]], key: str) -> dict[str, Any]:
    """Return an answer with the text of its content. Calls without an id are named after `key`."""
    words = text_of(chat_content(content))
    body: dict[str, Any] = {"role": "assistant", "content": words or (None if calls else "")}
    if calls:
        body["tool_calls"] = [
            tool_call(
                {"id": call.get("id") or f"{key}-{n}", "name": call["name"], "arguments": call.get("args")}
            )
            for n, call in enumerate(calls)
        ]
    return body


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
