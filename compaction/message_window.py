"""Windows by message count, for agents that trim by number of messages instead of tokens.

Removes the oldest whole tool groups until the count is met, so that no call is separated from its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.errors import PolicyError
from compaction.invariants.pairs import matches, safe_cuts
from compaction.messages import Message, Role, leading_system


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimStats:
    """The effect of a trim. A turn is an assistant message; a pair is a call with its result."""

    dropped_messages: int = 0
    dropped_turns: int = 0
    pairs_kept: int = 0
    over_by: int = 0  #: messages over the limit that had to be kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Trimmed:
    messages: tuple[Message, ...]
    stats: TrimStats


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageWindow:
    """A window of at most `max_messages`.

    `preserve_system` keeps leading system messages. The newest `min_keep_recent` messages are kept even if
    that exceeds the limit.
    """

    max_messages: int
    preserve_system: bool = True
    min_keep_recent: int = 0

    def __post_init__(self) -> None:
        if self.max_messages < 1:
            raise PolicyError("max_messages", f"must be at least 1, not {self.max_messages}")
        if self.min_keep_recent < 0:
            raise PolicyError("min_keep_recent", f"must be at least 0, not {self.min_keep_recent}")

    def trim(self, messages: Sequence[Message]) -> Trimmed:
        """Return the messages within the window; the same objects."""
        lead = leading_system(messages) if self.preserve_system else 0
        start = self._start(messages, lead)
        kept = (*messages[:lead], *messages[start:])
        dropped = messages[lead:start]
        stats = TrimStats(
            dropped_messages=len(dropped),
            dropped_turns=sum(message.role is Role.ASSISTANT for message in dropped),
            pairs_kept=len(matches(kept)),
            over_by=max(0, len(kept) - self.max_messages),
        )
        return Trimmed(messages=kept, stats=stats)

    def _start(self, messages: Sequence[Message], lead: int) -> int:
        """Return the first safe cut at which the limit is met, outside of the messages that must be kept."""
        if len(messages) <= self.max_messages:
            return lead
        first_fitting = len(messages) - (self.max_messages - lead)
        latest = max(lead, len(messages) - max(1, self.min_keep_recent))
        cuts = sorted(cut for cut in safe_cuts(messages) if lead <= cut <= latest)
        fitting = [cut for cut in cuts if cut >= first_fitting]
        return fitting[0] if fitting else (cuts[-1] if cuts else lead)
