"""Segments return what was indexed, whether they were built at once or merged."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.segments import (
    Document,
    Header,
    Postings,
    Segment,
    block_find,
    block_find_prefix,
    segment_build,
)

terms = st.text(alphabet="abcé9_./", min_size=1, max_size=6)
documents = st.builds(
    Document,
    role=st.sampled_from(["user", "assistant", "tool"]),
    tool=st.sampled_from(["", "Bash", "Read"]),
    is_error=st.booleans(),
    length=st.integers(0, 255),
    counts=st.dictionaries(terms, st.integers(1, 255), max_size=12),
)


def names(found: Sequence[Document]) -> set[str]:
    return {term for document in found for term in document.counts}


def stored(segment: Segment, terms: set[str]) -> dict[str, Postings]:
    """Return the postings of the terms. Fails if the segment contains more terms."""
    blocks = [data for _, data in segment.blocks]
    assert sum(len(block_find_prefix(data, b"")) for data in blocks) == len(terms)
    return {
        term: postings
        for data in blocks
        for term in terms
        if (postings := block_find(data, term.encode())) is not None
    }


def expected(found: Sequence[Document]) -> dict[str, list[tuple[int, int]]]:
    return {
        name: [(at, d.counts[name]) for at, d in enumerate(found) if name in d.counts]
        for name in names(found)
    }


@given(st.lists(documents, min_size=1, max_size=20))
def test_a_segment_returns_its_messages(found: list[Document]) -> None:
    segment = segment_build(found)
    postings = stored(segment, names(found))
    assert {term: list(zip(*each, strict=True)) for term, each in postings.items()} == expected(found)
    header = Header.unpack(segment.header.pack())
    assert list(header.roles) == [document.role for document in found]
    assert list(header.tools) == [document.tool for document in found]
    assert list(header.errors) == [document.is_error for document in found]
    assert list(header.lengths) == [document.length for document in found]


@pytest.mark.slow
@given(st.lists(st.lists(documents, min_size=1, max_size=8), min_size=1, max_size=4))
def test_merged_segments_equal_one_that_was_built_at_once(parts: list[list[Document]]) -> None:
    built = [segment_build(part) for part in parts]
    earlier = [(each.header, [data for _, data in each.blocks]) for each in built[:-1]]
    merged = segment_build(parts[-1], after=earlier)
    documents = [document for part in parts for document in part]
    whole, terms = segment_build(documents), names(documents)
    assert stored(merged, terms) == stored(whole, terms)
    assert merged.strong == whole.strong
    assert Header.unpack(merged.header.pack()) == whole.header


def test_a_term_is_in_the_block_that_begins_before_it() -> None:
    counts = {f"term{number:05}": 1 + number % 3 for number in range(5_000)}
    segment = segment_build([Document(role="user", tool="", is_error=False, length=9, counts=counts)])
    assert len(segment.blocks) > 3
    for name in ("term00000", "term02500", "term04999"):
        data = [data for first, data in segment.blocks if first <= name.encode()][-1]
        assert block_find(data, name.encode()) == (b"\0", bytes([counts[name]]))
    first = segment.blocks[0][1]
    assert block_find(first, b"term") is None
    assert block_find(first, b"term0000") is None
    assert block_find_prefix(first, b"term0000") == [(b"\0", bytes([1 + number % 3])) for number in range(10)]
