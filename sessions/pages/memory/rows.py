"""Template data: fields with their items, comparisons of two revisions and the size chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.memory.diffs import Change, diff
from compaction.memory.origins import Notes, Origin
from compaction.memory.schema import title_of
from compaction.memory.values import ASKED_TOKENS, MAX_TOKENS
from sessions.pages.text import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    text: str
    raw: str  #: as stored, for the edit form
    origin: Origin
    is_block: bool  #: has several lines, for example, a diff


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    name: str
    title: str
    single: bool
    items: Sequence[ItemRow]


def field_rows(notes: Notes) -> list[FieldRow]:
    """Return the fields that have items."""
    fields = [_field(notes, name) for name, _ in notes.memory.fields()]
    return [field for field in fields if field.items]


def _field(notes: Notes, name: str) -> FieldRow:
    items = [
        ItemRow(text=visible(item), raw=item, origin=notes.origin(name, item), is_block="\n" in item)
        for item in notes.memory.items(name)
    ]
    single = name in ("task", "next") or isinstance(notes.memory.value(name), str)
    return FieldRow(name=name, title=title_of(name), single=single, items=items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One item in both revisions. `kind` is same, added, removed, resolved or reworded.

    `origin` is that of an added or reworded item, if it is known.
    """

    kind: str
    old: str = ""
    new: str = ""
    origin: Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedField:
    title: str
    pairs: Sequence[Pair]

    @property
    def changed(self) -> Sequence[Pair]:
        return [pair for pair in self.pairs if pair.kind != "same"]


def compare(old: Notes, new: Notes) -> list[ComparedField]:
    """Return every field that has items in either revision, as pairs with the changes first."""
    names = dict.fromkeys(name for name, _ in (*new.memory.fields(), *old.memory.fields()))
    changes = {change.field: change for change in diff(old.memory, new.memory, new.resolved)}
    fields = [
        ComparedField(title=title_of(name), pairs=_pairs(name, old, new, changes.get(name))) for name in names
    ]
    return [field for field in fields if field.pairs]


def _pairs(name: str, old: Notes, new: Notes, change: Change | None) -> list[Pair]:
    """Return the items of a field in either revision. `change` is that of the field, if it has one."""
    reworded = dict(change.reworded) if change else {}
    resolved = change.resolved if change else ()
    before, after = old.memory.items(name), new.memory.items(name)
    return [
        *(
            Pair(kind="reworded", old=visible(a), new=visible(b), origin=new.origins.get((name, b)))
            for a, b in reworded.items()
        ),
        *(
            Pair(kind="resolved" if item in resolved else "removed", old=visible(item))
            for item in before
            if item not in after and item not in reworded
        ),
        *(
            Pair(kind="added", new=visible(item), origin=new.origins.get((name, item)))
            for item in after
            if item not in before and item not in reworded.values()
        ),
        *(Pair(kind="same", old=visible(item), new=visible(item)) for item in after if item in before),
    ]


def changed_only(fields: Sequence[ComparedField]) -> list[ComparedField]:
    """Return only the fields and items that differ."""
    return [ComparedField(title=field.title, pairs=field.changed) for field in fields if field.changed]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeChart:
    """Tokens per revision as a line in a box of `WIDTH` by `HEIGHT`, with the two limits."""

    points: str
    recommended_y: float
    top: int
    first: int
    last: int
    last_tokens: int


WIDTH, HEIGHT = 600, 120


def size_chart(sizes: Sequence[tuple[int, int, int]]) -> SizeChart | None:
    """Return the chart of (revision, turn, tokens) rows, or None for fewer than two revisions."""
    if len(sizes) < 2:
        return None
    largest = max(tokens for _, _, tokens in sizes)
    top = MAX_TOKENS if largest > ASKED_TOKENS else ASKED_TOKENS
    first, last = sizes[0][0], sizes[-1][0]
    points = [
        f"{(number - first) / (last - first) * WIDTH:.1f},{HEIGHT - tokens / top * HEIGHT:.1f}"
        for number, _, tokens in sizes
    ]
    return SizeChart(
        points=" ".join(points),
        recommended_y=round(HEIGHT - ASKED_TOKENS / top * HEIGHT, 1),
        top=top,
        first=first,
        last=last,
        last_tokens=sizes[-1][2],
    )
