"""Images in messages of other dialects, where only messages of users may contain media."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import dialects
from compaction.capabilities import Capabilities
from compaction.rendering import render

IMAGE = {"inlineData": {"mimeType": "image/png", "data": "aGVsbG8="}}
DRAWN = [
    {"role": "user", "parts": [{"text": "Draw it."}]},
    {"role": "model", "parts": [{"text": "Here it is."}, IMAGE]},
    {"role": "user", "parts": [{"text": "Thanks."}, IMAGE]},
]
MODEL = Capabilities(system_messages=True)
LOGO = [
    {"type": "input_text", "text": "The logo:"},
    {"type": "input_image", "image_url": "https://e.org/a.png"},
]
INSTRUCTED = [
    {"type": "message", "role": "developer", "content": LOGO},
    {"type": "message", "role": "user", "content": LOGO},
    {"type": "message", "role": "developer", "content": LOGO},
]


@pytest.mark.parametrize("format", ["anthropic", "openai", "openai-responses"])
@pytest.mark.parametrize(("source", "items"), [("gemini", DRAWN), ("openai-responses", INSTRUCTED)])
def test_only_messages_of_users_contain_images(source: str, items: list[Any], format: str) -> None:
    shown = render(dialects.parse(items, format=source), format=format, capabilities=MODEL).messages
    if format == source:
        assert shown == items
        return
    roles = {
        message["role"]
        for message in shown
        for part in message["content"]
        if isinstance(part, dict) and "image" in part["type"]
    }
    assert roles == {"user"}
    assert "Here it is." in str(shown) or "The logo:" in str(shown)
