"""Real tokens for estimated ones, from the usage that a log tells of its own calls.

Logs leave out what the client adds to every prompt (system text, tools), and estimates miss the provider's
count by a factor. Both are found from the usage: `ratio` from how the reported prompts grow, `unseen` from
the first of them. Where a call reports its usage, its own count is the anchor:

    real = reported * (shown + unseen) / (whole + unseen)

so that a prompt that nobody shortened has exactly the size that the provider reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from compaction.replay.transcript import RecordedCall, Transcript

#: Growth of a reported prompt by a factor outside of these is no growth by what we saw of it.
_LEAST, _MOST = 0.5, 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """`ratio` is real tokens per estimated one, `unseen` the estimated tokens that the log does not show."""

    ratio: float = 1.0
    unseen: int = 0

    def real(self, shown: int, *, whole: int, reported: int | None) -> int:
        """Real tokens of a prompt of `shown` estimated ones, where the client's own had `whole`."""
        if reported is None:
            return round(self.ratio * (shown + self.unseen))
        return round(reported * (shown + self.unseen) / max(1, whole + self.unseen))

    def estimated(self, real: int) -> int:
        """Estimated tokens of what the log shows for a prompt of so many real ones."""
        return int(real / self.ratio) - self.unseen


def scale_of(transcript: Transcript) -> Scale:
    """The scale of a session; estimates as they are where it reports no usage."""
    reports = [(call, transcript.size(call), reported(call)) for call in transcript.calls]
    known = [(call, size, count) for call, size, count in reports if count]
    if not known:
        return Scale()
    ratio = _ratio(known)
    _, size, count = known[0]
    return Scale(ratio=ratio, unseen=max(0, round(count / ratio) - size))


def reported(call: RecordedCall) -> int | None:
    """The provider's count of the call's prompt, None where the log has none."""
    return (call.usage.prompt_tokens or None) if call.usage else None


def _ratio(known: Sequence[tuple[RecordedCall, int, int | None]]) -> float:
    grown = list(_growth(known))
    estimated = sum(size for size, _ in grown)
    return sum(count for _, count in grown) / estimated if estimated else 1.0


def _growth(known: Sequence[tuple[RecordedCall, int, int | None]]) -> Iterator[tuple[int, int]]:
    """By how much the prompts grew from call to call, as estimated and as reported."""
    for (before, size, count), (after, size_after, count_after) in pairwise(known):
        estimated, real = size_after - size, (count_after or 0) - (count or 0)
        if before.start == after.start and estimated > 0 and _LEAST < real / estimated < _MOST:
            yield estimated, real
