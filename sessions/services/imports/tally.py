"""Compute the counters of a session turn by turn, as an import replays a log. No database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from compaction.continuation import Continuation
from compaction.messages import USAGE_COUNTS, Message, Role, Usage
from compaction.sizes.breakdown import TokenBreakdown
from compaction.sizes.calibration import Calibration
from compaction.sizes.meter import spike_of
from sessions.models import AgentSession
from sessions.selectors.token_budgets import calibration_of, session_calibration
from sessions.services.imports.prepare import PreparedSession, PreparedTurn
from sessions.services.ingestion import IngestedMessage
from sessions.store.continuation_columns import continuation_columns, continuation_of

#: A message that the client sent only once, after its `omitted_from`.
Once = tuple[int, Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The counters of a session after some of its turns.

    `context` counts the context of the recording client. `shown` counts the prompt that this server returns:
    that context, or what remains of it after compactions. The client's own compactions reset both. `once` are
    the messages of the context that the client will omit (`ImportedMessage.omitted_from`). `usage` and
    `cost_microusd` are sums over the calls billed to this session; `unpriced` counts those without a price.
    """

    last_at: datetime
    turns: int = 0
    messages: int = 0
    context: TokenBreakdown = field(default_factory=TokenBreakdown)
    shown: TokenBreakdown = field(default_factory=TokenBreakdown)
    once: Sequence[Once] = field(default=(), compare=False)
    continuation: Continuation = field(default_factory=Continuation)
    context_start: int = 0
    preamble_version: int = 0
    last_prompt: int = 0
    peak_prompt: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_microusd: int = 0
    unpriced: int = 0
    calibration: Calibration = field(default_factory=Calibration)

    @classmethod
    def opening(cls, prepared: PreparedSession, session: AgentSession) -> Tally:
        """Return the counters before the first turn: system prompt and tools, if the log contains them."""
        preamble = prepared.preamble
        has_preambles = preamble is not None or any(turn.preamble for turn in prepared.turns)
        breakdown = TokenBreakdown().set(**preamble.components) if preamble else TokenBreakdown()
        return cls(
            last_at=session.started_at,
            context=breakdown,
            shown=breakdown,
            preamble_version=int(preamble is not None) if has_preambles else session.preamble_version,
            calibration=calibration_of({}, model=prepared.facts.model),
        )

    @classmethod
    def of(cls, session: AgentSession) -> Tally:
        """Return the counters of a stored session."""
        return cls(
            turns=session.turn_count,
            messages=session.message_count,
            context=TokenBreakdown(tokens=session.context_components),
            shown=TokenBreakdown(tokens=session.shown_components),
            continuation=continuation_of(open_calls=session.open_calls, needs_repair=session.needs_repair),
            context_start=session.context_start,
            preamble_version=session.preamble_version,
            last_prompt=session.last_prompt_tokens,
            peak_prompt=session.peak_prompt_tokens,
            usage=Usage(**{name: getattr(session, name) for name in USAGE_COUNTS}),
            cost_microusd=session.cost_microusd,
            unpriced=session.unpriced_turns,
            calibration=session_calibration(session),
            last_at=session.last_active_at,
        )

    def prompt(self, turn: PreparedTurn) -> TokenBreakdown:
        """Return the breakdown of the prompt that the client sent in this turn's call."""
        values = _values(turn)
        answers = sum(value.role is Role.ASSISTANT for value in values)
        context = _before(turn, self.context)
        if turn.client_compaction is None:
            context = context.subtract(_omitted(self.once, self.messages + len(values) - answers))
        return context.prompt_of(values)

    def preamble_version_of(self, turn: PreparedTurn) -> int:
        """Return the version of the system prompt and tools in this turn."""
        return self.preamble_version + (turn.preamble is not None)

    def output_spike(self, turn: PreparedTurn, limit: int) -> int | None:
        """Return the tokens of the turn's tool outputs if they are a spike."""
        spike = spike_of(_values(turn), context=self.shown, turns=self.turns, budget=limit)
        return spike.tokens if spike is not None else None

    def after(self, turn: PreparedTurn, *, prompt: TokenBreakdown, format: str | None, billed: bool) -> Tally:
        """Return the counters after this turn, whose call had this `prompt`."""
        values = _values(turn)
        size, restarts = _size(turn, prompt), turn.client_compaction is not None
        counted = self._billed(turn) if billed else self
        messages = self.messages + len(values)
        once = [*(() if restarts else self.once), *once_of(turn.messages)]
        omitted = _omitted(once, messages)
        return replace(
            counted,
            turns=self.turns + 1,
            messages=messages,
            context=_before(turn, self.context).add(values).subtract(omitted),
            shown=_before(turn, self.shown).add(values).subtract(omitted),
            once=[each for each in once if each[0] >= messages],
            continuation=(Continuation() if restarts else self.continuation).after(values, format),
            context_start=self.messages if restarts else self.context_start,
            preamble_version=self.preamble_version_of(turn),
            last_prompt=size or self.last_prompt,
            calibration=self._calibration(turn, prompt),
            peak_prompt=max(size, self.peak_prompt),
            last_at=max(self.last_at, turn.at or self.last_at),
        )

    def apply_to(self, session: AgentSession) -> None:
        """Set the counters of the session. The caller saves it."""
        counters: Mapping[str, object] = {
            "turn_count": self.turns,
            "message_count": self.messages,
            "context_components": dict(self.context.tokens),
            "shown_components": dict(self.shown.tokens),
            **continuation_columns(self.continuation),
            "context_start": self.context_start,
            "preamble_version": self.preamble_version,
            "plan_turn": None,
            "last_prompt_tokens": self.last_prompt,
            "peak_prompt_tokens": self.peak_prompt,
            **{name: getattr(self.usage, name) for name in USAGE_COUNTS},
            "cost_microusd": self.cost_microusd,
            "unpriced_turns": self.unpriced,
            "calibration": self.calibration.to_json(),
            "last_active_at": self.last_at,
        }
        for name, value in counters.items():
            setattr(session, name, value)

    def _calibration(self, turn: PreparedTurn, prompt: TokenBreakdown) -> Calibration:
        """Return the calibration, updated with the prompt size that the log reports for this turn."""
        if turn.usage is None or not turn.messages:
            return self.calibration
        sizes = [prompt.total]
        if turn.prompt_served is not None:
            sizes.append(turn.prompt_served)
        return self.calibration.updated(sizes=sizes, reported=turn.usage.prompt_tokens)

    def _billed(self, turn: PreparedTurn) -> Tally:
        usage = turn.usage or Usage()
        sums = {name: getattr(self.usage, name) + getattr(usage, name) for name in USAGE_COUNTS}
        return replace(
            self,
            usage=Usage(**sums),
            cost_microusd=self.cost_microusd + (turn.cost_microusd or 0),
            unpriced=self.unpriced + (turn.usage is not None and turn.cost_microusd is None),
        )


def once_of(messages: Iterable[IngestedMessage]) -> list[Once]:
    """Return the messages that the client omits later, with the positions from which it does."""
    return [(message.omitted_from, message.value) for message in messages if message.omitted_from is not None]


def _omitted(once: Iterable[Once], end: int) -> list[Message]:
    """Return the messages that a prompt that ends before position `end` does not contain."""
    return [message for omitted_from, message in once if omitted_from < end]


def _before(turn: PreparedTurn, breakdown: TokenBreakdown) -> TokenBreakdown:
    """Return what a turn begins with: a compaction by the client removes the messages."""
    if turn.preamble is not None:
        breakdown = breakdown.set(**turn.preamble.components)
    return breakdown.without_messages() if turn.client_compaction else breakdown


def _size(turn: PreparedTurn, prompt: TokenBreakdown) -> int:
    """Return the prompt tokens of the turn's call: reported, else estimated, or 0 without a call."""
    if turn.usage:
        return turn.usage.prompt_tokens
    return prompt.total if any(value.role is Role.ASSISTANT for value in _values(turn)) else 0


def _values(turn: PreparedTurn) -> list[Message]:
    return [message.value for message in turn.messages]
