"""What the model saw at a turn, and how that differs from what it saw at another one."""

from sessions.selectors.seen.diff import Change, Difference, outline_diff
from sessions.selectors.seen.evictions import Eviction, eviction_of, evictions_at
from sessions.selectors.seen.outline import EditMade, Outline, asked_end, outline_at
from sessions.selectors.seen.pieces import Piece, originals, pieces_of
from sessions.selectors.seen.prompt import prompt_seen

__all__ = [
    "Change",
    "Difference",
    "EditMade",
    "Eviction",
    "Outline",
    "Piece",
    "asked_end",
    "eviction_of",
    "evictions_at",
    "originals",
    "outline_at",
    "outline_diff",
    "pieces_of",
    "prompt_seen",
]
