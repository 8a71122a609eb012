"""The running size of a context: what a prompt holds at each turn, by component, kept as sums.

Pure arithmetic over frozen values, so that a push adds to it in constant time and an import replays it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from compaction.messages import Message, Role, ToolResult
from compaction.view import View

#: The components of a prompt, in the order in which a turn's row has them.
COMPONENTS = ("user", "assistant", "tool_outputs", "recap", "system", "tools", "memory")


def component_of(message: Message) -> str:
    """The component that a message counts for. One that carries tool results counts for those."""
    if message.role is Role.ASSISTANT:
        return "assistant"
    if message.role is Role.TOOL or any(isinstance(part, ToolResult) for part in message.parts):
        return "tool_outputs"
    return "system" if message.role is Role.SYSTEM else "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Tokens (estimate) in the context, by component; components without any are left out."""

    tokens: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, view: View) -> Ledger:
        """What a view holds; what stands for evicted messages counts as recap."""
        beside = view.components
        ledger = cls().set(system=beside.system, tools=beside.tools, memory=beside.memory)
        ledger = ledger.add(entry.message for entry in view.entries if not entry.is_made)
        made = sum(entry.message.tokens for entry in view.entries if entry.is_made)
        return ledger.set(recap=made) if made else ledger

    @classmethod
    def of_row(cls, row: Sequence[int]) -> Ledger:
        """What `row` made."""
        return cls(tokens={name: count for name, count in zip(COMPONENTS, row, strict=False) if count})

    @property
    def row(self) -> list[int]:
        """The tokens in the order of `COMPONENTS`, without the zeros at the end."""
        counts = [self.tokens.get(name, 0) for name in COMPONENTS]
        while counts and not counts[-1]:
            counts.pop()
        return counts

    @property
    def total(self) -> int:
        return sum(self.tokens.values())

    def add(self, messages: Iterable[Message]) -> Ledger:
        tokens = dict(self.tokens)
        for message in messages:
            name = component_of(message)
            tokens[name] = tokens.get(name, 0) + message.tokens
        return replace(self, tokens=tokens)

    def set(self, **components: int) -> Ledger:
        tokens = {**self.tokens, **components}
        return replace(self, tokens={name: count for name, count in tokens.items() if count})

    def restarted(self) -> Ledger:
        """The context after the client compacted it: system text and tools stay, the messages are gone."""
        return replace(self, tokens={k: v for k, v in self.tokens.items() if k in {"system", "tools"}})

    def prompt_of(self, messages: Iterable[Message]) -> Ledger:
        """A turn's prompt: everything before the answer that the turn brings, or all where it has none."""
        asked = []
        for message in messages:
            if message.role is Role.ASSISTANT:
                break
            asked.append(message)
        return self.add(asked)
