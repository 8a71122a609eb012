"""How much of each prompt the provider reads from its cache.

The log decides, because the cache is that of the provider and the client, not of a policy: a call that found
only a part of the recorded prompt in the cache finds at most that much of any other prompt. Calls without
reported usage find the last prompt for `cache_seconds`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from compaction.replay.scale import Scale
from compaction.replay.transcript import RecordedCall, Transcript

#: Minimum tokens of a prompt that providers cache.
MIN_CACHED_TOKENS = 1_024

#: From this share of the last prompt on, the provider has found all of it: caches end at a breakpoint.
_ALL = 0.9


@dataclass(kw_only=True)
class ProviderCache:
    """The cache during one replay.

    `last` is the last call, and `was_recorded` states whether its prompt was the recorded one.
    """

    transcript: Transcript
    scale: Scale
    last: RecordedCall | None = None
    last_at: datetime | None = None
    was_recorded: bool = True

    def read(self, call: RecordedCall, *, kept: int, is_recorded: bool) -> int:
        """Return the tokens that the next call reads from the cache.

        `kept` are the provider tokens that its prompt shares with the last one. `is_recorded` states whether
        the provider received and reported exactly this prompt.
        """
        reported = _reported(call)
        if is_recorded and self.was_recorded and reported is not None:
            cached = reported
        else:
            cached = min(kept, self._limit(call, kept, reported))
            cached = cached if cached >= MIN_CACHED_TOKENS else 0
        self.last, self.last_at, self.was_recorded = call, call.at or self.last_at, is_recorded
        return cached

    def _limit(self, call: RecordedCall, kept: int, reported: int | None) -> int:
        """Return how much of a prompt the provider has in its cache."""
        if reported is None:
            return 0 if self.last is None or self._is_idle(call) else kept
        if self.last is None or self.last.start != call.start:
            return reported
        sent, before = self.transcript.sent(call), self.transcript.sent(self.last)
        if sent < before:  # contextapp compacted the recorded prompt, so its report says nothing
            return 0 if self._is_idle(call) else kept
        whole = self.scale.real(before, sent=sent, reported=call.reported)
        return kept if reported >= _ALL * whole else reported

    def _is_idle(self, call: RecordedCall) -> bool:
        idle = (call.at - self.last_at).total_seconds() if call.at and self.last_at else 0
        return idle > self.transcript.cache_seconds


def _reported(call: RecordedCall) -> int | None:
    """Return the tokens that the recorded call read from the cache, or None if they are unknown.

    The counts of a response for which the provider made several calls are sums.
    """
    if call.usage is None or not call.reported or call.usage.input_tokens != call.reported:
        return None
    return call.usage.cache_read_tokens
