"""The exceptions to the rule that head and tail remain unchanged, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.edits import Edit, Op
from compaction.layout import Layout
from compaction.view import Entry, View

_ON_MESSAGES = frozenset({Op.REPLACE, Op.STRIP, Op.EVICT})


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbatimException:
    """Messages of the `head` or `tail` that one step changed for one reason."""

    part: str
    step: str
    reason: str
    messages: int


def verbatim_exceptions(before: View, edits: Sequence[Edit], layout: Layout) -> tuple[VerbatimException, ...]:
    """Return the exceptions caused by these edits of the view, head first."""
    parts = {"head": before.entries[: layout.head_end], "tail": before.entries[layout.tail_start :]}
    return tuple(
        VerbatimException(part=part, step=step, reason=reason, messages=len(changed))
        for part, entries in parts.items()
        for (step, reason), changed in _changed(entries, edits).items()
    )


def _changed(entries: Sequence[Entry], edits: Sequence[Edit]) -> dict[tuple[str, str], set[int]]:
    """Return the positions of the changed entries by step and reason."""
    found: dict[tuple[str, str], set[int]] = {}
    if not entries:
        return found
    first, last = entries[0].first, entries[-1].last
    near = [edit for edit in edits if edit.position <= last and edit.end >= first and edit.op in _ON_MESSAGES]
    for entry in entries if near else ():
        for edit in near:
            if edit.position <= entry.last and edit.end >= entry.first:
                found.setdefault((edit.strategy, edit.reason), set()).add(entry.first)
    return found
