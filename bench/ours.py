"""contextapp's policies as contenders. Edits accumulate as in production."""

from __future__ import annotations

from collections.abc import Sequence

from bench.replay import Case
from compaction.messages import Message
from compaction.policy import Policy
from compaction.replay.served import MemoryText, Served, no_memory
from compaction.replay.transcript import RecordedCall, Transcript
from compaction.sizes.tokens import TokenCounter


class Ours:
    """A session with a policy. Work that runs in the background in production is done immediately."""

    def __init__(
        self,
        case: Case,
        counter: TokenCounter,
        policy: Policy,
        *,
        served: type[Served] = Served,
        memory_text: MemoryText = no_memory,
    ) -> None:
        transcript = Transcript(name=case.name, format=case.format, messages=case.messages, calls=())
        self.served = served(transcript, policy, counter, budget=case.budget, memory_text=memory_text)

    def prompt(self, n: int) -> Sequence[Message]:
        return self.served.prompt(RecordedCall(turn=n, start=0, answer=n)).view.messages
