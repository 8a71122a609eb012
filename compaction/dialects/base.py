"""The interface of a dialect: all differences between the providers' message formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar

from compaction.capabilities import Capabilities
from compaction.dialects.blocks import as_text
from compaction.dialects.stored import StoredPrompt
from compaction.invariants import pairs
from compaction.invariants.pairs import Pairing
from compaction.invariants.violations import Subject, Violation
from compaction.messages import JSON, Message, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult


class Match(IntEnum):
    """How well a dialect recognizes a message or a tool definition, from weakest to strongest."""

    NONE = 0  #: not valid in this dialect
    POSSIBLE = 1  #: valid in this dialect, but not typical of any
    LIKELY = 2  #: valid in other dialects too, but typical of this one
    CERTAIN = 3  #: contains an element that only this dialect has


#: The role and the parts of a message, whether it can be sent unchanged, and its JSON object.
Reading = tuple[Role, tuple[Part, ...], bool, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The fields of a provider request. `system` is None if the dialect has no such field."""

    format: str
    messages: list[dict[str, JSON]]
    system: JSON = None
    tools: list[JSON] | None = None

    def to_json(self) -> dict[str, JSON]:
        """Return the fields that are present."""
        fields = {"system": self.system, "messages": self.messages, "tools": self.tools}
        return {name: value for name, value in fields.items() if value is not None}


class Dialect(ABC):
    """One provider message format: how its messages are parsed, validated and rendered.

    A new dialect is a subclass in a module of its package and one line in `compaction.dialects.DIALECTS`.
    """

    #: Value of the API field `format`, at most 16 characters.
    name: ClassVar[str]
    #: Name in the user interface.
    label: ClassVar[str]
    #: Whether no message of this dialect is valid in another one, and none of another one in this.
    is_distinct: ClassVar[bool] = False
    #: How tool calls and their results must be arranged.
    pairing: ClassVar[Pairing]

    def message_error(self, item: JSON) -> str | None:
        """Return why a JSON value is not a message of this dialect, or None if it is one.

        It is not one if `read` would lose content. Details that rendering repairs, such as empty
        text or a call without a result, are not errors.
        """
        if isinstance(item, Mapping) and isinstance(item.get("role"), str):
            return None
        return "A message must be an object with a string `role`."

    def recognizes(self, item: JSON) -> Match:
        """Return how certain it is that a JSON value is a message of this dialect.

        Must depend on the value only: a stored message is recognized again each time it is read.
        """
        return Match.NONE if self.message_error(item) is not None else Match.POSSIBLE

    def recognizes_tool(self, definition: JSON) -> Match:
        """Return how certain it is that a tool definition is in this dialect."""
        return Match.NONE

    def parse_message(
        self, item: JSON, *, position: int, turn: int, tokens: int = 0, pinned: bool = False
    ) -> Message:
        """Parse one message. Accepts any JSON value and never raises: other values become a user's text."""
        if isinstance(item, Mapping):
            role, parts, is_sound, source = self.read(item)
        else:
            role, parts, is_sound, source = Role.USER, (Text(text=as_text(item)),), False, {}
        return Message(
            position=position,
            turn=turn,
            tokens=tokens,
            pinned=pinned,
            role=role,
            parts=parts,
            format=self.name,
            source=source,
            patched=not is_sound,
        )

    @abstractmethod
    def read(self, item: Mapping[str, Any]) -> Reading:
        """Read one message. Must not raise, whatever the object contains."""

    @abstractmethod
    def render_message(self, message: Message) -> list[dict[str, JSON]]:
        """Render one message of any dialect: none if it has no content, several if this dialect splits it.

        An unedited message of this dialect is returned as pushed.
        """

    @abstractmethod
    def render_prompt(
        self, messages: Sequence[Message], *, system: JSON, tools: JSON, capabilities: Capabilities
    ) -> Prompt:
        """Repair and render a whole prompt. `system` and `tools` may be in any dialect."""

    def open_calls(self, items: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return the ids of the calls at the end of a rendered prompt, which still need their results."""
        found: list[str] = []
        for item in reversed(items):
            message = self.parse_message(item, position=0, turn=0)
            if message.role is not Role.ASSISTANT:
                break
            found[:0] = [call.call_id for call in pairs.calls_of(message)]
        return found

    def next_calls(self, open_calls: tuple[str, ...], message: Message) -> tuple[tuple[str, ...], bool]:
        """Return the open calls after a message, and whether it validly follows them.

        See `compaction.continuation`. By default, all calls of a response are in one message.
        """
        answers = [part.call_id for part in message.parts if isinstance(part, ToolResult)]
        if message.role is Role.ASSISTANT:
            calls = tuple(part.call_id for part in message.parts if isinstance(part, ToolCall))
            return calls, not open_calls and not answers and len(set(calls)) == len(calls)
        if not open_calls:
            return (), not answers
        if self.pairing.merges_messages:
            return (), pairs.begins_with_results(message, open_calls)
        left = tuple(call for call in open_calls if call not in answers)
        return left, message.role is Role.TOOL and len(left) + 1 == len(open_calls)

    def is_unsigned(self, message: bytes) -> bool:
        """Return whether a stored answer has calls of this dialect that lack a signature."""
        return False

    def after_edits(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages of a view, without fields that depend on content that edits have removed."""
        return messages

    @abstractmethod
    def tool_definition(self, *, name: str, description: str, schema: Mapping[str, Any]) -> dict[str, JSON]:
        """Return the definition of a tool; `schema` is the JSON Schema of its arguments."""

    def violations(self, subject: Subject) -> Iterator[Violation]:
        """Yield each rule of the provider that the prompt breaks. Tool pairing is checked by default."""
        return pairs.violations(subject, self.pairing)

    def needs_repair(self, part: Part) -> bool:
        """Return whether a part requires `render_prompt`, so that its bytes cannot be joined."""
        match part:
            case ToolCall(server=server) | ToolResult(server=server):
                return server
            case Opaque(kind=kind):
                return kind not in {"image", "image_url", "document"}
            case Text(text=text):
                return not text.strip()
            case Thinking():
                return False

    def join_stored(self, stored: StoredPrompt, capabilities: Capabilities) -> dict[str, bytes] | None:
        """Return the request fields made of the stored bytes, or None if the prompt must be rendered.

        The messages are in a valid order (see `Continuation`); this method checks the rules about the prompt
        as a whole. By default, every prompt is rendered.
        """
        return None
