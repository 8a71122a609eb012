"""The prompts that a policy serves, call by call. Edits accumulate as in production."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from compaction.capabilities import capabilities_of
from compaction.edits import Op
from compaction.errors import SummaryError
from compaction.identifiers.extract import references
from compaction.messages import Usage
from compaction.planning.pipeline import Plan, PlanRequest, plan
from compaction.planning.preparation import boundary_request, is_near_hard, leaves_room, record_extended
from compaction.planning.record import Record
from compaction.policy import Budget, Policy
from compaction.provider_engine import NAME, first_threshold, is_compacted_by_provider
from compaction.recap import Recap, Summarizer
from compaction.recap.spans import Summary
from compaction.replay.prompts import GrowingPrompt
from compaction.replay.provider import provider_plan
from compaction.replay.transcript import RecordedCall, Transcript
from compaction.sizes.calibration import Calibration
from compaction.sizes.tokens import TokenCounter
from compaction.triggers import TriggerState, evaluate, hard
from compaction.view import View

_EMPTY = View(entries=())

#: Returns the text of the working memory at a compaction, given the view and the next message's position.
MemoryText = Callable[[View, int], str]


def no_memory(view: View, until: int) -> str:
    """Return an empty working memory, because recordings have none."""
    return ""


class Served:
    """A session under a policy. Work that runs in the background in production is done immediately.

    If the recording client compacted its own context, the policy starts over with the remaining messages.
    """

    def __init__(
        self,
        transcript: Transcript,
        policy: Policy,
        counter: TokenCounter,
        *,
        budget: int,
        summarizer: Summarizer | None = None,
        memory_text: MemoryText = no_memory,
    ) -> None:
        self._transcript, self._policy, self._counter = transcript, policy, counter
        self._budget = Budget(input_tokens=max(1, budget))
        self._recap: Recap | None = None
        self._compacted_tokens: int | None = None
        self._recoverable: frozenset[str] | None = None
        self._boundary: View | None = None  #: see `compaction.planning.preparation`
        self._summarizer, self._memory_text = summarizer, memory_text
        self._capabilities = capabilities_of(transcript.model)
        self._begin(0)
        self.records: list[Record] = []
        self.summary_calls: list[Usage] = []
        self.summary_failures = 0

    def prompt(self, call: RecordedCall) -> GrowingPrompt:
        """Return the prompt of the next call.

        It is the same object as before if messages were only appended to it. Unedited messages are always the
        same objects.
        """
        if call.start != self._start:
            self._begin(call.start)
        self._append(call)
        self._calls += 1
        if is_compacted_by_provider(self._policy, self._transcript.format):
            self._compact_by_provider()
            return self._prompt
        state = TriggerState(
            tokens=self._prompt.tokens,
            budget=self._budget.input_tokens,
            compacted_tokens=self._compacted_tokens,
            turns_since_compaction=self._calls,
        )
        trigger = evaluate(state, self._policy)
        if trigger and not (trigger is hard.TRIGGER and self._compact_to_boundary()):
            self._compact(trigger.name)
        elif self._boundary is None and is_near_hard(
            tokens=state.tokens, budget=state.budget, policy=self._policy
        ):
            self._boundary = self._prompt.view
        return self._prompt

    def recoverable(self) -> frozenset[str]:
        """Return the identifiers in hidden contents that a handle in the view retrieves."""
        if self._recoverable is None:
            self._recoverable = references(*self._hidden_texts())
        return self._recoverable

    def _begin(self, start: int) -> None:
        self._start, self._until, self._calls = start, start, 0
        self._prompt = GrowingPrompt(_EMPTY)
        self._recap = self._compacted_tokens = self._recoverable = self._boundary = None

    def _append(self, call: RecordedCall) -> None:
        self._prompt.append(self._transcript.messages[self._until : call.answer], beside=call.beside)
        self._until = call.answer

    def _compact(self, trigger: str) -> None:
        made = plan(self._request(trigger))
        summary = self._summary(made)
        if summary is not None:
            made = plan(self._request(trigger, summary))
        self._apply(made)

    def _compact_to_boundary(self) -> bool:
        """Compact the messages up to the plan boundary, as the server does in advance, if that leaves room.

        A model's summary is never prepared in advance.
        """
        boundary = self._boundary
        if boundary is None or self._summarizer is not None or self._capabilities.bound_thinking:
            return False
        made = plan(boundary_request(replace(self._request(hard.TRIGGER.name), view=boundary)))
        current = self._prompt.view
        following = current.entries[len(boundary.entries) :]
        tokens, room = current.tokens - boundary.tokens, self._budget.input_tokens
        if not leaves_room(
            made.record, tokens=tokens, messages=len(following), policy=self._policy, room=room
        ):
            return False
        record = record_extended(
            made.record,
            tokens=tokens,
            newest=[entry.message for entry in following],
            policy=self._policy,
            calibration=Calibration(),
            room=room,
        )
        view = View(
            entries=(*made.view.entries, *following),
            edits=made.view.edits,
            all_components=current.all_components,
            transcript=current.transcript,
        )
        self._apply(replace(made, view=view, record=record))
        return True

    def _compact_by_provider(self) -> None:
        if self._prompt.tokens < first_threshold(self._policy, self._budget.input_tokens):
            return
        made = provider_plan(self._request(NAME), format=self._transcript.format)
        if made is not None:
            self._apply(made)

    def _apply(self, made: Plan) -> None:
        self.records.append(made.record)
        if made.edits:
            self._prompt, self._recoverable = GrowingPrompt(made.view), None
        self._recap, self._boundary = made.recap, None
        self._compacted_tokens, self._calls = made.view.tokens, 0

    def _request(self, trigger: str, summary: Summary | None = None) -> PlanRequest:
        view = self._prompt.view
        return PlanRequest(
            view=view,
            policy=self._policy,
            counter=self._counter,
            budget=self._budget,
            trigger=trigger,
            capabilities=self._capabilities,
            previous=self._recap,
            summary=summary,
            memory_text=self._memory_text(view, self._until),
        )

    def _summary(self, made: Plan) -> Summary | None:
        """Return a model's summary of the evicted messages, or None without evictions or a summary."""
        evicted = made.evicted
        if self._summarizer is None or evicted is None:
            return None
        try:
            result = self._summarizer.summarize(
                evicted.messages,
                previous=self._recap,
                cap_tokens=evicted.cap_tokens,
                instructions=self._policy.summary_instructions,
                requests=evicted.requests,
            )
        except SummaryError as error:
            self.summary_calls += error.calls
            self.summary_failures += 1
            return None
        self.summary_calls += result.calls
        return Summary.of(result.recap, evicted, self._counter)

    def _hidden_texts(self) -> list[str]:
        view = self._prompt.view
        shown = {entry.first for entry in view.entries if not entry.is_generated}
        texts = []
        for edit in view.edits:
            if edit.op is Op.REPLACE and edit.handle and edit.part is not None and edit.position in shown:
                part = self._transcript.messages[edit.position].parts[edit.part]
                texts.append(getattr(part, "text", "") or getattr(part, "arguments", ""))
        return texts


def without_model(policy: Policy) -> Policy:
    """Return the policy without the soft trigger, whose purpose is to prepare a model's summary."""
    return replace(policy, soft=0.0)
