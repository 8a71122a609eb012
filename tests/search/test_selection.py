"""Which segments a query reads."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from search.selection import best_segments

LISTS = st.lists(
    st.tuples(st.sampled_from([0.1, 0.3, 1.0, 1.7, 4.0]), st.sets(st.integers(0, 40))), max_size=9
)


@given(LISTS, st.integers(1, 12))
def test_the_best_are_those_with_the_largest_sums(lists: list[tuple[float, set[int]]], limit: int) -> None:
    sums: Counter[int] = Counter()
    for value, segments in lists:
        sums.update(dict.fromkeys(segments, value))
    totals = sorted((round(value, 6) for value in sums.values()), reverse=True)
    least = totals[:limit][-1] if totals else 0.0
    best = best_segments(lists, limit)
    assert {id: round(value, 6) for id, value in best.items()} == {
        id: round(value, 6) for id, value in sums.items() if round(value, 6) >= least
    }
