"""The edits that have an effect, without those that a later one covers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction.edits import Edit, Op
from compaction.view import in_force
from compaction.view.components import MEMORY, TOOLS


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


def component(op: Op, text: str) -> Edit:
    return Edit(strategy="shed", op=op, position=0, end=0, text=text)


def test_only_the_last_edit_of_a_component_is_in_force() -> None:
    """The text of the working memory is independent of whether it is shown."""
    shed, restore, tools = (
        component(Op.SHED, MEMORY),
        component(Op.RESTORE, MEMORY),
        component(Op.SHED, TOOLS),
    )
    first, second = component(Op.MEMORY, "Task: a"), component(Op.MEMORY, "memory")
    assert in_force([tools, shed, restore]) == (tools,)
    assert in_force([shed, restore, shed]) == (shed,)
    assert in_force([first, shed, second]) == (shed, second)
    assert in_force([first, second, shed, tools, restore]) == (second, tools)
