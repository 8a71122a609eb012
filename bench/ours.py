"""contextapp's policies as contenders. Edits accumulate as in production."""

from __future__ import annotations

from collections.abc import Sequence

from bench.replay import Case
from compaction.messages import Message
from compaction.policy import Policy
from compaction.record import Record
from compaction.replay.served import Served
from compaction.replay.transcript import RecordedCall, Transcript
from compaction.tokens import TokenCounter


class Ours:
    """A session with a policy. Work that runs in the background in production is done immediately."""

    def __init__(self, case: Case, counter: TokenCounter, policy: Policy) -> None:
        transcript = Transcript(name=case.name, format=case.format, messages=case.messages, calls=())
        self._served = Served(transcript, policy, counter, budget=case.budget)

    @property
    def records(self) -> Sequence[Record]:
        return self._served.records

    def prompt(self, n: int) -> Sequence[Message]:
        return self._served.prompt(RecordedCall(turn=n, start=0, answer=n)).messages
