"""The counters of a session while its turns are gone through: an import replays a log with them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime

from compaction.breakdown import TokenBreakdown
from compaction.continuation import Continuation
from compaction.messages import Message, Usage
from sessions.models import AgentSession
from sessions.services.imports.prepare import PreparedSession, PreparedTurn


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What a session's turns add up to.

    `context` is what the recording client still had: its own compactions begin it anew. `shown` is what we
    serve: the whole transcript, or what our compactions left of it. `usage` and `cost_microusd` sum the
    calls that are billed to this session, `unpriced` counts those without a price.
    """

    last_at: datetime
    turns: int = 0
    messages: int = 0
    context: TokenBreakdown = field(default_factory=TokenBreakdown)
    shown: TokenBreakdown = field(default_factory=TokenBreakdown)
    seam: Continuation = field(default_factory=Continuation)
    context_start: int = 0
    last_prompt: int = 0
    peak_prompt: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_microusd: int = 0
    unpriced: int = 0

    @classmethod
    def opening(cls, prepared: PreparedSession, *, at: datetime) -> Tally:
        """Before the first turn, at the session's start: what the log knows of system text and tools."""
        breakdown = TokenBreakdown().set(system=prepared.system_tokens, tools=prepared.tools_tokens)
        return cls(last_at=at, context=breakdown, shown=breakdown)

    @classmethod
    def of(cls, session: AgentSession) -> Tally:
        """Where a stored session stands."""
        return cls(
            turns=session.turn_count,
            messages=session.message_count,
            context=TokenBreakdown(tokens=session.context_components),
            shown=TokenBreakdown(tokens=session.shown_components),
            seam=Continuation(open_calls=tuple(session.open_calls), regular=not session.needs_repair),
            context_start=session.context_start,
            last_prompt=session.last_prompt_tokens,
            peak_prompt=session.peak_prompt_tokens,
            usage=Usage(**{each.name: getattr(session, each.name) for each in fields(Usage)}),
            cost_microusd=session.cost_microusd,
            unpriced=session.unpriced_turns,
            last_at=session.last_active_at,
        )

    def prompt(self, turn: PreparedTurn) -> TokenBreakdown:
        """What the call of this turn read, as the client had it."""
        return self._begun(turn).prompt_of(_values(turn))

    def after(self, turn: PreparedTurn, *, format: str, billed: bool) -> Tally:
        values = _values(turn)
        size = self._size(turn)
        counted = self._billed(turn) if billed else self
        return replace(
            counted,
            turns=self.turns + 1,
            messages=self.messages + len(values),
            context=self._begun(turn).add(values),
            shown=self.shown.add(values),
            seam=self.seam.after(values, format),
            context_start=self.messages if turn.client_compaction and values else self.context_start,
            last_prompt=size or self.last_prompt,
            peak_prompt=max(size, self.peak_prompt),
            last_at=max(self.last_at, turn.at or self.last_at),
        )

    def into(self, session: AgentSession) -> None:
        """Sets the session's counters; the caller saves."""
        counters: Mapping[str, object] = {
            "turn_count": self.turns,
            "message_count": self.messages,
            "context_components": dict(self.context.tokens),
            "shown_components": dict(self.shown.tokens),
            "open_calls": list(self.seam.open_calls),
            "needs_repair": not self.seam.regular,
            "context_start": self.context_start,
            "last_prompt_tokens": self.last_prompt,
            "peak_prompt_tokens": self.peak_prompt,
            **{each.name: getattr(self.usage, each.name) for each in fields(Usage)},
            "cost_microusd": self.cost_microusd,
            "unpriced_turns": self.unpriced,
            "last_active_at": self.last_at,
        }
        for name, value in counters.items():
            setattr(session, name, value)

    def _begun(self, turn: PreparedTurn) -> TokenBreakdown:
        return self.context.without_messages() if turn.client_compaction else self.context

    def _size(self, turn: PreparedTurn) -> int:
        """The prompt of the turn's call: as reported, else as estimated, 0 where there was no call."""
        if turn.usage:
            return turn.usage.prompt_tokens
        return self.prompt(turn).total if any(value.role == "assistant" for value in _values(turn)) else 0

    def _billed(self, turn: PreparedTurn) -> Tally:
        usage = turn.usage or Usage()
        sums = {
            each.name: getattr(self.usage, each.name) + getattr(usage, each.name) for each in fields(Usage)
        }
        return replace(
            self,
            usage=Usage(**sums),
            cost_microusd=self.cost_microusd + (turn.cost_microusd or 0),
            unpriced=self.unpriced + (turn.usage is not None and turn.cost_microusd is None),
        )


def _values(turn: PreparedTurn) -> list[Message]:
    return [message.value for message in turn.messages]
