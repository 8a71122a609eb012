"""A mechanical summary of a request that contains only words of the request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from compaction.identifiers.extract import Kind, kind_of, mentions

JSON = dict[str, Any]

_RECORD = re.compile(r"<record-(session-\w+)>\n(.*?)\n</record-\1>", re.DOTALL)
_SESSION = re.compile(r"<(session-\w+)>\n(.*?)\n</\1>", re.DOTALL)
_MESSAGE = re.compile(r"^#(\d+) t\d+ (\w+): (.*?)(?=\n\n#|\Z)", re.DOTALL | re.MULTILINE)
_ASKED = re.compile(r"at most (\d+) tokens")
_WORDS = 12
_ENTITIES = 4
_CHARACTERS_PER_TOKEN = 3


def summary_of(request: JSON) -> JSON:
    """Return a summary of the requested size, after the previous record.

    Decisions come from assistant messages, entities from paths, facts from outputs, open items from requests.
    """
    content = request["messages"][0]["content"]
    record = _RECORD.search(content)
    sections: JSON = json.loads(record[2]) if record else {}
    room = int(_ASKED.findall(content)[-1]) * _CHARACTERS_PER_TOKEN
    made: JSON = {"decisions": [], "entities": [], "facts": [], "open_items": []}
    data = [(name, item) for name in made for item in sections.get(name, ())]
    seen: set[str] = set()
    for name, item in [*data, *_items(content)]:
        subject = item.get("name") or item["text"]
        if subject in seen:
            continue
        seen.add(subject)
        room -= len(json.dumps(item))
        if room < 0:
            break
        made[name].append(item)
    return made


def _items(content: str) -> Iterator[tuple[str, JSON]]:
    session = _SESSION.search(content)
    assert session, "no session in the request"
    for position, role, text in _MESSAGE.findall(session[2]):
        sources = [int(position)]
        words = " ".join(text.split()[:_WORDS])
        if role == "user":
            yield "open_items", {"text": words, "status": "open", "sources": sources}
        elif role == "tool":
            yield "facts", {"text": words, "sources": sources}
        elif not words.startswith("calls "):
            yield "decisions", {"text": words, "status": "standing", "sources": sources}
        paths = [name for name in mentions(text) if kind_of(name) is Kind.PATH and name.isascii()]
        for path in list(dict.fromkeys(paths))[:_ENTITIES]:
            yield "entities", {"name": path, "notes": [], "names": [], "sources": sources}
