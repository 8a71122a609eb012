"""Our policies as contenders: one state a session, edits add up as they do in production."""

from __future__ import annotations

from collections.abc import Sequence

from bench.replay import Case
from compaction.edits import Edit
from compaction.messages import Message
from compaction.pipeline import plan
from compaction.policy import Budget, Policy
from compaction.recap import Recap
from compaction.record import Record
from compaction.tokens import TokenCounter
from compaction.triggers import TriggerState, evaluate
from compaction.view import View, apply


class Ours:
    """A session under a policy. What production does in the background is done at once here."""

    def __init__(self, case: Case, counter: TokenCounter, policy: Policy) -> None:
        self._case, self._counter, self._policy = case, counter, policy
        self._edits: tuple[Edit, ...] = ()
        self._recap: Recap | None = None
        self._shown: list[Message] = []
        self._until = 0  #: messages that are in `_shown` or evicted from it
        self._fired_tokens: int | None = None
        self.records: list[Record] = []

    def prompt(self, n: int) -> Sequence[Message]:
        self._shown += self._case.messages[self._until : n]
        self._until = n
        tokens = sum(message.tokens for message in self._shown)
        state = TriggerState(tokens=tokens, budget=self._case.budget, fired_tokens=self._fired_tokens)
        firing = evaluate(state, self._policy)
        if firing:
            self._compact(firing.trigger, n)
        return tuple(self._shown)

    def _compact(self, trigger: str, n: int) -> None:
        view: View = apply(self._edits, self._case.messages[:n])
        made = plan(
            view,
            self._policy,
            self._counter,
            budget=Budget(input_tokens=self._case.budget),
            trigger=trigger,
            previous=self._recap,
        )
        self.records.append(made.record)
        self._edits += made.edits
        self._recap = made.recap
        self._shown = list(made.view.messages)
        self._fired_tokens = made.view.tokens
