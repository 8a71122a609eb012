"""A synthetic session and its simulation under each policy. Pure Python.

The session consists of real messages in the requested sizes: tool calls that read files, some of them again,
and their results. They are replayed like recorded sessions (`compaction.replay`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from compaction.dialects import DEFAULT
from compaction.messages import Message, Role, Text, ToolCall, ToolResult, Usage
from compaction.policy import PRESETS, Policy
from compaction.replay.mentions import PromptMentions
from compaction.replay.prices import Prices
from compaction.replay.prompts import GrowingPrompt
from compaction.replay.reference_count import ReferenceCount
from compaction.replay.result import Lost, References
from compaction.replay.served import Served, without_model
from compaction.replay.transcript import RecordedTurn, Transcript, transcript_of
from compaction.sizes.breakdown import TokenBreakdown
from compaction.sizes.tokens import CharacterCounter, message_tokens
from compaction.view import View

#: Characters per token in the simulation.
_TOKEN_CHARACTERS = 4

_COUNTER = CharacterCounter()

_FILLER = "-" * 79 + "\n"

#: The compared presets, from no compaction to the most aggressive.
POLICIES = ("off", "baseline", "masking", "balanced", "aggressive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The parameters of a simulated session.

    Sizes are in tokens, `trigger`, `target` and `tail` in percent of the budget, `price` in dollars per
    million tokens.
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
    tail: int = 25
    price: float = 3.0

    @property
    def budget(self) -> int:
        return max(self.window - self.output, self.window // 4)

    @property
    def prices(self) -> Prices:
        """Typical price ratios: cache reads 0.1×, cache writes 1.25× and output 5× the input price."""
        rates = {"input": self.price, "read": self.price / 10, "write": self.price * 1.25}
        return Prices.of_rates({**rates, "output": self.price * 5})

    @property
    def kept_percent(self) -> int:
        """The percentage of the budget that no compaction removes: the fixed tokens and the tail."""
        return min(100, round(100 * self.fixed_tokens / self.budget) + self.tail)

    @property
    def fixed_tokens(self) -> int:
        """Tokens that every prompt contains in addition to the messages."""
        return self.system + self.tools + self.memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one policy. `overflow` is the first turn whose prompt exceeds the budget.

    `components` are the tokens of the last prompt by component. `references` counts the names that the model
    uses again; `missing` lists the first ones that are not in the prompt.
    """

    policy: str
    prompts: tuple[int, ...]
    compactions: tuple[int, ...]
    rebilled: int
    overflow: int | None
    cost_microusd: int
    uncached_microusd: int
    components: Mapping[str, int]
    references: References
    missing: tuple[Lost, ...]

    @property
    def peak(self) -> int:
        return max(self.prompts, default=0)

    @property
    def mean(self) -> int:
        return sum(self.prompts) // max(len(self.prompts), 1)


@lru_cache(64)
def simulate(scenario: Scenario) -> tuple[Outcome, ...]:
    """Run the scenario under each policy."""
    transcript = build_transcript(scenario)
    return tuple(_outcome(scenario, transcript, name) for name in POLICIES)


def policy_for(scenario: Scenario, name: str) -> Policy:
    """Return the preset with the scenario's trigger, target and tail.

    `off` is returned unchanged, and `baseline`, a sliding window, has no tail.
    """
    policy = without_model(PRESETS[name])
    if name == "off":
        return policy
    trigger = scenario.trigger / 100
    policy = replace(policy, hard=trigger, target=min(scenario.target / 100, trigger))
    return policy if name == "baseline" else replace(policy, tail_share=scenario.tail / 100)


def build_transcript(scenario: Scenario) -> Transcript:
    """Build the session: a question, followed by a tool call and its result in each turn."""
    messages = [_message(0, 0, Role.USER, Text(text=_text("question", scenario.message)))]
    turns = []
    for turn in range(scenario.turns):
        first = len(messages) if turn else 0
        if turn:
            result = ToolResult(call_id=f"call-{turn - 1}", text=_result(turn - 1, scenario.result))
            messages.append(_message(len(messages), turn, Role.USER, result))
        call = ToolCall(call_id=f"call-{turn}", name="read", arguments=f'{{"path": "{_path(turn)}"}}')
        text = Text(text=_text(f"step {turn}: read {_path(turn)}", scenario.message))
        messages.append(_message(len(messages), turn, Role.ASSISTANT, text, call))
        turns.append(RecordedTurn(index=turn, first=first, end=len(messages), beside=scenario.fixed_tokens))
    return transcript_of(name="lab", format=DEFAULT, messages=messages, turns=turns)


def _message(position: int, turn: int, role: Role, *parts: Text | ToolCall | ToolResult) -> Message:
    message = Message(position=position, role=role, parts=parts, turn=turn)
    return replace(message, tokens=message_tokens(message, _COUNTER))


def _path(turn: int) -> str:
    """Return the file that a step reads. Every third step reads an earlier file again."""
    return f"module_{turn if turn % 3 else turn // 2}.py"


def _result(turn: int, tokens: int) -> str:
    # A file that is read again has changed slightly, so it supersedes the earlier output instead of
    # duplicating it.
    return _text(f"# {_path(turn)}, read in step {turn}", tokens)


def _text(first_line: str, tokens: int) -> str:
    """Return a text of the given size. Only its first line has content; the rest is filler."""
    return f"{first_line}\n{_FILLER * (tokens * _TOKEN_CHARACTERS // len(_FILLER) + 1)}"[
        : max(tokens * _TOKEN_CHARACTERS, 1)
    ]


def _outcome(scenario: Scenario, transcript: Transcript, name: str) -> Outcome:
    served = Served(transcript, policy_for(scenario, name), _COUNTER, budget=scenario.budget)
    tally, prompt = _Tally(), GrowingPrompt(View(entries=()))
    references = ReferenceCount(transcript, served)
    mentions = PromptMentions(transcript.messages, transcript.references)
    for call in transcript.calls:
        before = len(served.records)
        prompt = served.prompt(call)
        tally.add(prompt, mentions.show(prompt.messages), compacted=len(served.records) > before)
        references.count(call, mentions, usable=prompt.tokens <= scenario.budget)
    return Outcome(
        policy=name,
        prompts=tuple(tally.prompts),
        compactions=tuple(tally.compactions),
        rebilled=tally.rebilled,
        overflow=next((turn for turn, size in enumerate(tally.prompts) if size > scenario.budget), None),
        cost_microusd=tally.cost(scenario, cached=True),
        uncached_microusd=tally.cost(scenario, cached=False),
        components=_components(scenario, prompt.view),
        references=references.total,
        missing=tuple(references.examples),
    )


def _components(scenario: Scenario, view: View) -> Mapping[str, int]:
    """Return the tokens of a prompt by component. The replay has one figure for all fixed tokens."""
    fixed = {"system": scenario.system, "tools": scenario.tools, "memory": scenario.memory}
    return TokenBreakdown.of_view(view).set(**fixed).tokens


@dataclass(kw_only=True)
class _Tally:
    """Prompt sizes so far, and how many tokens of each prompt the provider's cache holds."""

    prompts: list[int] = field(default_factory=list)
    cached: list[int] = field(default_factory=list)
    compactions: list[int] = field(default_factory=list)
    rebilled: int = 0

    def add(self, prompt: GrowingPrompt, shared: int, *, compacted: bool) -> None:
        """Add the next prompt. The cache holds the first `shared` messages, which the last prompt had too."""
        turn = len(self.prompts)
        new = sum(message.tokens for message in prompt.messages[shared:])
        self.cached.append(prompt.tokens - new if turn else 0)
        if compacted:
            self.compactions.append(turn)
            self.rebilled += prompt.tokens - self.cached[-1]
        self.prompts.append(prompt.tokens)

    def cost(self, scenario: Scenario, *, cached: bool) -> int:
        """Return the cost in micro-dollars, with or without the provider's cache."""
        output, prices, total = scenario.message, scenario.prices, 0.0
        for prompt, hits in zip(self.prompts, self.cached, strict=True):
            usage = (
                Usage(cache_read_tokens=hits, cache_write_tokens=prompt - hits, output_tokens=output)
                if cached
                else Usage(uncached_tokens=prompt, output_tokens=output)
            )
            total += prices.of(usage)
        return round(total)
