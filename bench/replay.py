"""Replay a transcript step by step with a policy and score each prompt.

A step is an assistant message. For each step, the policy builds the prompt from all earlier messages, which
is scored by the message that the model *actually* wrote. Each policy has one state per session, so edits
accumulate as in production.

**Reference**: an identifier (`compaction.identifiers`) in the text or call arguments of the message that an
earlier message of the session mentions. It is *kept* if the prompt mentions it. *Distant*: last mentioned
more than 10 messages back and not in the head. *Far*: last mentioned before the newest tokens that fill the
budget, and not in the head, so that no window of that size contains it. References of prompts that are
invalid or do not fit count as lost.

**Cost**: uncached prompt tokens count 1.25, cached tokens the cache-read price. Cached is the longest common
prefix of whole messages with the previous prompt, if it has at least 1,024 tokens.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Protocol

from compaction.identifiers.texts import message_references
from compaction.layout import head_end
from compaction.messages import Message, Role
from compaction.rendering import render
from compaction.replay.mentions import PromptMentions
from compaction.validation import validate

DISTANT_MESSAGES = 10
WRITE_PRICE = 1.25
READ_PRICES = (0.1, 0.05)
MIN_CACHED_TOKENS = 1_024


@dataclass(frozen=True)
class Case:
    """One session to replay with one budget."""

    name: str
    format: str
    messages: tuple[Message, ...]
    budget: int

    @cached_property
    def references(self) -> tuple[frozenset[str], ...]:
        """The identifiers that each message mentions, by position."""
        return tuple(map(message_references, self.messages))

    @cached_property
    def head_end(self) -> int:
        return head_end(self.messages)

    @cached_property
    def head_references(self) -> frozenset[str]:
        return frozenset().union(*self.references[: self.head_end])

    @cached_property
    def tokens_before(self) -> tuple[int, ...]:
        """The tokens of all messages before each position; the last item is the total."""
        return tuple(accumulate((m.tokens for m in self.messages), initial=0))


class Contender(Protocol):
    """A policy under test, with its state for one session."""

    def prompt(self, n: int) -> Sequence[Message]:
        """Return the prompt for the first `n` messages.

        `n` only grows. Unedited messages are the same objects.
        """
        ...


@dataclass
class Score:
    """Totals over the steps of one or more sessions."""

    steps: int = 0
    valid: int = 0
    fits: int = 0
    tokens: int = 0
    raw_tokens: int = 0
    compactions: int = 0
    plan_ms: list[float] = field(default_factory=list)
    references: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    cost: list[float] = field(default_factory=lambda: [0.0] * len(READ_PRICES))

    def add(self, other: Score) -> None:
        self.steps += other.steps
        self.valid += other.valid
        self.fits += other.fits
        self.tokens += other.tokens
        self.raw_tokens += other.raw_tokens
        self.compactions += other.compactions
        self.plan_ms += other.plan_ms
        self.references += other.references
        self.kept += other.kept
        self.cost = [a + b for a, b in zip(self.cost, other.cost, strict=True)]


def replay(case: Case, contender: Contender, *, check: bool = True) -> Score:
    """Return the score of one session. `check` validates each prompt; otherwise all count as valid."""
    score, shown = Score(), PromptMentions(case.messages, case.references)
    last_seen: dict[str, int] = {}
    for n, message in enumerate(case.messages):
        if message.role is Role.ASSISTANT and n:
            usable = _step(score, shown, case, contender, n, check)
            _count_references(score, shown, case, n, last_seen, usable)
        last_seen.update(dict.fromkeys(case.references[n], n))
    return score


def _step(score: Score, shown: PromptMentions, case: Case, contender: Contender, n: int, check: bool) -> bool:
    """Score the prompt before message `n`. Return whether it is valid and fits."""
    started = time.perf_counter()
    prompt = contender.prompt(n)
    took = 1_000 * (time.perf_counter() - started)
    before = len(shown.messages)
    shared = shown.show(prompt)
    if shared < before:
        score.compactions += 1
        score.plan_ms.append(took)
    tokens = sum(message.tokens for message in prompt)
    cached = sum(message.tokens for message in prompt[:shared])
    cached = cached if cached >= MIN_CACHED_TOKENS else 0
    for index, read_price in enumerate(READ_PRICES):
        score.cost[index] += WRITE_PRICE * (tokens - cached) + read_price * cached
    valid = not check or _is_valid(prompt, case.format)
    fits = tokens <= case.budget
    score.steps += 1
    score.valid += valid
    score.fits += fits
    score.tokens += tokens
    score.raw_tokens += case.tokens_before[n]
    return valid and fits


def _is_valid(prompt: Sequence[Message], format: str) -> bool:
    rendered = render(prompt, format=format)
    return not validate(rendered.messages, format, system=rendered.system)


def _count_references(
    score: Score, shown: PromptMentions, case: Case, n: int, last_seen: dict[str, int], usable: bool
) -> None:
    window_start = bisect_right(case.tokens_before, case.tokens_before[n] - case.budget) - 1
    for name in case.references[n]:
        if name not in last_seen:
            continue
        seen = last_seen[name]
        classes = ["all"]
        if name not in case.head_references:
            classes += ["distant"] * (n - seen > DISTANT_MESSAGES) + ["far"] * (seen < window_start)
        score.references.update(classes)
        if usable and name in shown:
            score.kept.update(classes)
