"""The interface of an agent tool, and helpers to read its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from compaction.dialects import get_dialect
from sessions.models import AgentSession

#: Maximum characters of a result. A longer one would undo the compaction that removed the content.
MAX_RESULT = 20_000

Arguments = Mapping[str, Any]


class ToolError(Exception):
    """The call failed; the message is returned to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTool:
    """A tool that an agent gives to its model.

    `schema` is the JSON Schema of its arguments. `run` returns the result as text, or raises `ToolError`.
    A tool that `writes` requires an API key with the scope `push`.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    run: Callable[[AgentSession, Arguments], str]
    writes: bool = False

    def definition(self, format: str) -> dict[str, Any]:
        """Return the tool's definition in the dialect `format`."""
        dialect = get_dialect(format)
        return dialect.tool_definition(name=self.name, description=self.description, schema=self.schema)


def text_argument(arguments: Arguments, name: str) -> str:
    """Return a required text argument. Raises `ToolError`."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ToolError(f"`{name}` must be a non-empty string")
    return value


def number_argument(arguments: Arguments, name: str, default: int) -> int:
    """Return a whole number from 0. Raises `ToolError`."""
    value = arguments.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ToolError(f"`{name}` must be a whole number from 0")
    return value


def truncate(text: str) -> str:
    """Return at most `MAX_RESULT` characters, with a note on how to read the rest."""
    if len(text) <= MAX_RESULT:
        return text
    return f"{text[:MAX_RESULT]}\n[{len(text) - MAX_RESULT} more characters; use offset and limit, or grep]"
