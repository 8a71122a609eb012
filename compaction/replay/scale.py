"""Convert estimated tokens to real tokens, using the usage that a log reports.

Logs omit what the client adds to every prompt (system prompt, tools), and estimates differ from the
provider's count by a factor. Both are derived from the usage: `ratio` from the growth of the reported
prompts, `unseen` from the first of them. If a call reports its usage, its size is calculated from it:

    real = reported * (shown + unseen) / (sent + unseen)   if shown <= sent
    real = reported + ratio * (shown - sent)               otherwise

so that the prompt that was sent has exactly the size that the provider reported. The second formula is for
sessions that contextapp compacted: the whole transcript may be many times as large as the prompt that was
sent, whose report would scale it too inaccurately.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from compaction.replay.transcript import RecordedCall, Transcript

#: A growth factor outside of these bounds was not caused by the logged messages.
_LEAST, _MOST = 0.5, 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The scale of a session. `ratio` is real tokens per estimated token.

    `unseen` are the estimated tokens that the log does not contain.
    """

    ratio: float = 1.0
    unseen: int = 0

    def real(self, shown: int, *, sent: int, reported: int | None) -> int:
        """Return the real tokens of `shown` estimated tokens if those of the `sent` prompt were reported."""
        if reported is None:
            return round(self.ratio * (shown + self.unseen))
        if shown > sent:
            return round(reported + self.ratio * (shown - sent))
        return round(reported * (shown + self.unseen) / max(1, sent + self.unseen))

    def estimated(self, real: int) -> int:
        """Return the estimated tokens of logged content for a prompt of `real` tokens."""
        return int(real / self.ratio) - self.unseen


def scale_of(transcript: Transcript) -> Scale:
    """Return the scale of a session. Without reported usage, estimates are not scaled."""
    known = [(call, transcript.sent(call), count) for call in transcript.calls if (count := call.reported)]
    if not known:
        return Scale()
    ratio = _ratio(known)
    _, size, count = known[0]
    return Scale(ratio=ratio, unseen=max(0, round(count / ratio) - size))


def _ratio(known: Sequence[tuple[RecordedCall, int, int]]) -> float:
    grown = list(_growth(known))
    estimated = sum(size for size, _ in grown)
    return sum(count for _, count in grown) / estimated if estimated else 1.0


def _growth(known: Sequence[tuple[RecordedCall, int, int]]) -> Iterator[tuple[int, int]]:
    """Return the estimated and the reported growth of the prompts from call to call."""
    for (before, size, count), (after, size_after, count_after) in pairwise(known):
        estimated, real = size_after - size, count_after - count
        if before.start == after.start and estimated > 0 and _LEAST < real / estimated < _MOST:
            yield estimated, real
