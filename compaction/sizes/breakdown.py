"""The token breakdown of a prompt: the number of tokens of each component.

Plain arithmetic on frozen values. A push adds its messages in constant time; imports use the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from compaction.messages import Message, Role, ToolResult
from compaction.view import View

#: The components of a prompt, in the order in which they appear in it. Charts and tables use this order.
PROMPT_ORDER = ("system", "tools", "memory", "recap", "user", "assistant", "tool_outputs")

#: The same components in the order in which `Turn.component_tokens` stores them: the last are often zero.
COMPONENTS = ("user", "assistant", "tool_outputs", "recap", "system", "tools", "memory")


def component_of(message: Message) -> str:
    """Return the component that a message counts toward: a message with tool results is a tool output."""
    if message.role is Role.ASSISTANT:
        return "assistant"
    if message.role is Role.TOOL or any(isinstance(part, ToolResult) for part in message.parts):
        return "tool_outputs"
    return "system" if message.role is Role.SYSTEM else "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBreakdown:
    """Estimated tokens by component. Components without tokens are left out."""

    tokens: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of_view(cls, view: View) -> TokenBreakdown:
        """Return the breakdown of a view. Replacements of evicted messages count as recap."""
        other = view.components
        breakdown = cls().set(system=other.system, tools=other.tools, memory=other.memory)
        breakdown = breakdown.add(entry.message for entry in view.entries if not entry.is_generated)
        recap = sum(entry.message.tokens for entry in view.entries if entry.is_generated)
        return breakdown.set(recap=recap) if recap else breakdown

    @classmethod
    def from_counts(cls, counts: Sequence[int]) -> TokenBreakdown:
        """Return the breakdown for the counts from `counts()`."""
        return cls(tokens={name: count for name, count in zip(COMPONENTS, counts, strict=False) if count})

    @property
    def counts(self) -> list[int]:
        """The tokens in the order of `COMPONENTS`, without trailing zeros."""
        counts = [self.tokens.get(name, 0) for name in COMPONENTS]
        while counts and not counts[-1]:
            counts.pop()
        return counts

    @property
    def total(self) -> int:
        return sum(self.tokens.values())

    def add(self, messages: Iterable[Message]) -> TokenBreakdown:
        """Return a breakdown that also counts these messages."""
        tokens = dict(self.tokens)
        for message in messages:
            name = component_of(message)
            tokens[name] = tokens.get(name, 0) + message.tokens
        return replace(self, tokens=tokens)

    def subtract(self, messages: Iterable[Message]) -> TokenBreakdown:
        """Return a breakdown that no longer counts these messages."""
        counts = TokenBreakdown().add(messages).tokens
        tokens = {name: max(count - counts.get(name, 0), 0) for name, count in self.tokens.items()}
        return self.set(**tokens)

    def set(self, **components: int) -> TokenBreakdown:
        """Return a breakdown with these components replaced."""
        tokens = {**self.tokens, **components}
        return replace(self, tokens={name: count for name, count in tokens.items() if count})

    def without_messages(self) -> TokenBreakdown:
        """Return only the system prompt and tools, which remain when a client compacts its context."""
        return replace(self, tokens={k: v for k, v in self.tokens.items() if k in {"system", "tools"}})

    def prompt_of(self, messages: Iterable[Message]) -> TokenBreakdown:
        """Return the breakdown of a turn's prompt, including the messages before the model's response."""
        prompt = []
        for message in messages:
            if message.role is Role.ASSISTANT:
                break
            prompt.append(message)
        return self.add(prompt)
