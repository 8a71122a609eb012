"""The edits that have an effect, without those that a later one covers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction.edits import Edit, Op
from compaction.view import in_force


def eviction(span: tuple[int, int]) -> Edit:
    first, length = span
    return Edit(strategy="recap", op=Op.EVICT, position=first, end=first + length)


def is_within(edit: Edit, other: Edit) -> bool:
    return other.position <= edit.position and edit.end <= other.end


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=20))
def test_a_later_eviction_covers_those_within_it(spans: list[tuple[int, int]]) -> None:
    edits = [eviction(span) for span in spans]
    expected = [
        edit for at, edit in enumerate(edits) if not any(is_within(edit, other) for other in edits[at + 1 :])
    ]
    assert list(in_force(edits)) == expected
