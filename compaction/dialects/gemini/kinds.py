"""The fields of contents and parts in Gemini's API.

The API accepts each field in camel case and in snake case. A message keeps its client's spelling.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from compaction.messages import JSON

NAME = "gemini"

USER, MODEL = "user", "model"
#: The role of function responses in older clients.
FUNCTION = "function"

TEXT = "text"
CALL, RESPONSE = "functionCall", "functionResponse"
THOUGHT, SIGNATURE = "thought", "thoughtSignature"
#: Parts of the model about tools that Google runs: the calls, and the field of each result with its text.
SERVER_CALLS = ("executableCode", "toolCall")
SERVER_RESULTS = ("codeExecutionResult", "toolResponse")
#: Parts with media.
INLINE, FILE = "inlineData", "fileData"

#: The fields that can be a part's data.
DATA = (TEXT, CALL, RESPONSE, INLINE, FILE, *SERVER_CALLS, *SERVER_RESULTS)

#: The longest name of a function, and the characters that it must not contain.
_MAX_NAME = 128
_NOT_NAME = re.compile(r"[^a-zA-Z0-9_.:-]")

_UPPER = re.compile(r"[A-Z]")


def function_name(value: JSON) -> str:
    """Return the name of a function in a form that the API accepts."""
    return _NOT_NAME.sub("_", value)[:_MAX_NAME] or "unknown" if isinstance(value, str) else "unknown"


def snake(name: str) -> str:
    """Return the spelling of a field in snake case."""
    return _UPPER.sub(lambda found: f"_{found[0].lower()}", name)


_SPELLINGS = {name: (name, snake(name)) for name in (*DATA, THOUGHT, SIGNATURE)}


def spelled(part: Mapping[str, Any], name: str) -> str | None:
    """Return the name under which a part has a field, or None if it does not have it."""
    for spelling in _SPELLINGS[name]:
        if part.get(spelling) is not None:
            return spelling
    return None


def value_of(part: Mapping[str, Any], name: str) -> JSON:
    """Return the value of a field in either spelling, or None."""
    spelling = spelled(part, name)
    return part[spelling] if spelling is not None else None


def kind_of(part: Mapping[str, Any]) -> str | None:
    """Return the field that is a part's data, or None if it has no known one."""
    return next((name for name in DATA if spelled(part, name) is not None), None)


def is_thought(part: Mapping[str, Any]) -> bool:
    """Return whether a part is a summary of the model's thinking."""
    return bool(part.get(THOUGHT))
