"""A made-up session, and what the core makes of it under each policy. Pure.

The messages are real ones for the core: calls with their results, of the sizes that are asked for, that name
files and read some of them again. They are replayed as recorded sessions are (`compaction.replay`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from compaction.messages import Message, Role, Text, ToolCall, ToolResult, Usage
from compaction.policy import PRESETS, Policy
from compaction.replay import Prices, transcript_of
from compaction.replay.served import Served, without_model
from compaction.replay.transcript import Transcript, Turn
from compaction.tokens import CharacterCounter, message_tokens
from compaction.view import View

#: Characters of text that make a token here.
_CHARACTERS = 4

_COUNTER = CharacterCounter()

_RULE = "-" * 79 + "\n"

#: What the page compares, from doing nothing to the most eager.
POLICIES = ("off", "baseline", "masking", "balanced", "aggressive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Sizes are tokens. `trigger` and `target` are per cent of the budget, prices dollars a million tokens.

    `target` is how far a compaction goes down: the smaller, the stronger.
    """

    window: int = 100_000
    output: int = 16_000
    system: int = 3_000
    tools: int = 6_000
    memory: int = 800
    turns: int = 80
    message: int = 300
    result: int = 2_500
    trigger: int = 95
    target: int = 40
    price: float = 3.0

    @property
    def budget(self) -> int:
        return max(self.window - self.output, self.window // 4)

    @property
    def prices(self) -> Prices:
        """In the proportions that providers have: a cached token a tenth, a written one a quarter more."""
        rates = {"input": self.price, "read": self.price / 10, "write": self.price * 1.25}
        return Prices.of_rates({**rates, "output": self.price * 5})

    @property
    def beside(self) -> int:
        return self.system + self.tools + self.memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One policy. `overflow` is the first turn whose prompt does not fit the budget; costs: micro-dollars."""

    policy: str
    prompts: tuple[int, ...]
    compactions: tuple[int, ...]
    rebilled: int
    overflow: int | None
    cost_microusd: int
    uncached_microusd: int

    @property
    def peak(self) -> int:
        return max(self.prompts, default=0)

    @property
    def mean(self) -> int:
        return sum(self.prompts) // max(len(self.prompts), 1)


@lru_cache(64)
def outcomes(scenario: Scenario) -> tuple[Outcome, ...]:
    """What each policy does to the scenario."""
    transcript = transcript_made(scenario)
    return tuple(_outcome(scenario, transcript, name) for name in POLICIES)


def policy_for(scenario: Scenario, name: str) -> Policy:
    """The preset with the scenario's trigger and target; those that never act keep theirs."""
    policy = without_model(PRESETS[name])
    if name == "off":
        return policy
    trigger = scenario.trigger / 100
    return replace(policy, hard=trigger, target=min(scenario.target / 100, trigger))


def transcript_made(scenario: Scenario) -> Transcript:
    """The session: a question, then a call and its result in each turn."""
    messages = [_message(0, 0, Role.USER, Text(text=_text("question", scenario.message)))]
    turns = []
    for turn in range(scenario.turns):
        first = len(messages) if turn else 0
        if turn:
            answered = ToolResult(call_id=f"call-{turn - 1}", text=_result(turn - 1, scenario.result))
            messages.append(_message(len(messages), turn, Role.USER, answered))
        call = ToolCall(call_id=f"call-{turn}", name="read", arguments=f'{{"path": "{_path(turn)}"}}')
        said = Text(text=_text(f"step {turn}: look at {_path(turn)}", scenario.message))
        messages.append(_message(len(messages), turn, Role.ASSISTANT, said, call))
        turns.append(Turn(index=turn, first=first, end=len(messages), beside=scenario.beside))
    return transcript_of(name="lab", format="anthropic", messages=messages, turns=turns)


def _message(position: int, turn: int, role: Role, *parts: Text | ToolCall | ToolResult) -> Message:
    message = Message(position=position, role=role, parts=parts, turn=turn)
    return replace(message, tokens=message_tokens(message, _COUNTER))


def _path(turn: int) -> str:
    """Every third step reads a file again that was read before."""
    return f"src/module_{turn if turn % 3 else turn // 2}.py"


def _result(turn: int, tokens: int) -> str:
    # What is read again has changed a little: it supersedes the older reading and is no duplicate of it.
    return _text(f"# {_path(turn)}, read in step {turn}", tokens)


def _text(beginning: str, tokens: int) -> str:
    """A text of that size. Only its first line says something: what is behind it would only be searched."""
    return f"{beginning}\n{_RULE * (tokens * _CHARACTERS // len(_RULE) + 1)}"[: max(tokens * _CHARACTERS, 1)]


def _outcome(scenario: Scenario, transcript: Transcript, name: str) -> Outcome:
    served = Served(transcript, policy_for(scenario, name), _COUNTER, budget=scenario.budget)
    walk = _Walk()
    for call in transcript.calls:
        before = len(served.records)
        walk.step(served.prompt(call), compacted=len(served.records) > before)
    return Outcome(
        policy=name,
        prompts=tuple(walk.prompts),
        compactions=tuple(walk.compactions),
        rebilled=walk.rebilled,
        overflow=next((turn for turn, size in enumerate(walk.prompts) if size > scenario.budget), None),
        cost_microusd=walk.cost(scenario, cached=True),
        uncached_microusd=walk.cost(scenario, cached=False),
    )


@dataclass(kw_only=True)
class _Walk:
    """The sizes of the prompts so far, and what of each the one before had too: the cache still has it."""

    prompts: list[int] = field(default_factory=list)
    known: list[int] = field(default_factory=list)
    compactions: list[int] = field(default_factory=list)
    rebilled: int = 0
    last: Sequence[Message] = ()

    def step(self, view: View, *, compacted: bool) -> None:
        shared, turn = 0, len(self.prompts)
        for old, new in zip(self.last, view.messages, strict=False):
            if old is not new:
                break
            shared += new.tokens
        beside = view.tokens - sum(message.tokens for message in view.messages)
        self.known.append(shared + beside if turn else 0)
        if compacted:
            self.compactions.append(turn)
            self.rebilled += view.tokens - self.known[-1]
        self.prompts.append(view.tokens)
        self.last = view.messages

    def cost(self, scenario: Scenario, *, cached: bool) -> int:
        output, prices, total = scenario.message, scenario.prices, 0.0
        for prompt, known in zip(self.prompts, self.known, strict=True):
            usage = (
                Usage(cache_read_tokens=known, cache_write_tokens=prompt - known, output_tokens=output)
                if cached
                else Usage(uncached_tokens=prompt, output_tokens=output)
            )
            total += prices.of(usage)
        return round(total)
