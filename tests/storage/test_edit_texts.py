"""Texts of edits that repeat an earlier one are stored after it, and read back unchanged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sessions.store.edit_texts import LONGEST, Base, text_pack, text_unpack

LINES = st.lists(st.sampled_from(["", "- src/a.py: read t1", "é\0", "used: x y z" * 40]), max_size=9)


@given(st.lists(LINES.map("\n".join), max_size=12))
def test_a_text_is_read_with_few_others(texts: list[str]) -> None:
    chain: list[bytes] = []
    for key, text in enumerate(texts):
        base = Base.of(key - 1, chain) if chain else None
        chain = [*(chain if base is not None else []), text_pack(text, base)]
        assert text_unpack(chain).decode() == text
        assert len(chain) <= LONGEST
