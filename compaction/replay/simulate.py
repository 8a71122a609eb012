"""Replay a session under a policy, call by call, and compare each prompt with the model's response.

**Prompt size**: the shown messages, system prompt and tools, in real tokens according to the session's
reports (`replay.scale`). **Cached**: the leading messages shared with the last prompt, as far as the provider
still caches them (`replay.cache`). **References**: the identifiers that
the answer uses and that an earlier message of the client's prompt mentions. For a prompt that is invalid or
over the budget, all of them count as lost. **Found**: the lost references for which the agent's search
returns the message that mentioned them last, if the agent searches for the name that the answer uses.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from compaction.capabilities import capabilities_of
from compaction.policy import Policy
from compaction.provider_engine import is_compacted_by_provider
from compaction.recap import Summarizer
from compaction.replay.cache import ProviderCache
from compaction.replay.mentions import PromptMentions
from compaction.replay.prompts import GrowingPrompt
from compaction.replay.reference_count import ReferenceCount, Search
from compaction.replay.result import Result, Series
from compaction.replay.scale import Scale, scale_of
from compaction.replay.served import Served
from compaction.replay.transcript import RecordedCall, Transcript
from compaction.replay.validity import Validity
from compaction.sizes.tokens import TokenCounter


def replay(
    transcript: Transcript,
    policy: Policy,
    counter: TokenCounter,
    *,
    budget: int,
    summarizer: Summarizer | None = None,
    search: Search | None = None,
    check: bool = True,
) -> Result:
    """Return the result of one session under one policy.

    `budget` is in estimated tokens of the logged content (`Limit.budget`). A `summarizer` is called
    during the replay; if it fails, the deterministic recap is used. `search` is called with the first
    `MOST_SEARCHES` lost references. With `check`, each prompt is validated; without, all count as valid.
    """
    served = Served(transcript, policy, counter, budget=budget, summarizer=summarizer)
    capabilities = capabilities_of(transcript.model)
    if is_compacted_by_provider(policy, transcript.format):
        capabilities = replace(capabilities, bound_thinking=False)  # the provider keeps thinking valid
    validity = Validity(transcript.format, capabilities)
    run = _Run(transcript=transcript, budget=budget, served=served, validity=validity, search=search)
    for call in transcript.calls:
        run.step(call, check=check)
    return run.result(policy.name)


@dataclass(kw_only=True)
class _Run:
    """The state of a running replay: the last prompt, and the figures so far."""

    transcript: Transcript
    budget: int
    served: Served
    validity: Validity
    search: Search | None = None
    prompt: GrowingPrompt | None = None
    scale: Scale = field(init=False)
    mentions: PromptMentions = field(init=False)
    cache: ProviderCache = field(init=False)
    columns: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    compacted: list[int] = field(default_factory=list)
    valid: int = 0
    fits: int = 0
    references: ReferenceCount = field(init=False)

    def __post_init__(self) -> None:
        self.scale = scale_of(self.transcript)
        self.cache = ProviderCache(transcript=self.transcript, scale=self.scale)
        self.mentions = PromptMentions(self.transcript.messages, self.transcript.references)
        self.references = ReferenceCount(self.transcript, self.served, search=self.search)

    def step(self, call: RecordedCall, *, check: bool) -> None:
        compactions, before = len(self.served.records), len(self.mentions.messages)
        prompt = self.served.prompt(call)
        shared = self.mentions.show(prompt.messages, has_grown=prompt is self.prompt)
        self.prompt = prompt
        if len(self.served.records) > compactions and shared < before:
            self.compacted.append(call.turn)
        valid = not check or self.validity.is_valid(prompt.messages, shared, grew=shared == before)
        fits = prompt.tokens <= self.budget
        self.valid += valid
        self.fits += fits
        lost = self.references.count(call, self.mentions, usable=valid and fits)
        self._measure(call, prompt, shared, lost)

    def result(self, policy: str) -> Result:
        turns, sizes, prompts, cached, outputs, lost = (
            zip(*self.columns, strict=True) if self.columns else ((),) * 6
        )
        return Result(
            policy=policy,
            budget=self.budget,
            series=Series(
                turns=turns, sizes=sizes, prompts=prompts, cached=cached, outputs=outputs, lost=lost
            ),
            valid=self.valid,
            fits=self.fits,
            compacted=tuple(self.compacted),
            rebilled=round(self.scale.ratio * sum(each.tokens_rebilled for each in self.served.records)),
            references=self.references.total,
            first_lost=self.references.first_lost,
            examples=tuple(self.references.examples),
            summaries=tuple(self.served.summary_calls),
            failures=self.served.summary_failures,
        )

    def _measure(self, call: RecordedCall, prompt: GrowingPrompt, shared: int, lost: int) -> None:
        sent, reported = self.transcript.sent(call), call.reported
        size = self.scale.real(prompt.tokens, sent=sent, reported=reported)
        kept = prompt.tokens - sum(message.tokens for message in prompt.messages[shared:])
        is_recorded = not prompt.has_edits and prompt.tokens == sent
        cached = self.cache.read(
            call, kept=self.scale.real(kept, sent=sent, reported=reported), is_recorded=is_recorded
        )
        output = call.usage.output_tokens if call.usage else self.transcript.messages[call.answer].tokens
        self.columns.append((call.turn, prompt.tokens, size, min(cached, size), output, lost))
