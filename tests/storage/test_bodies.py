"""Compressed bodies are restored byte for byte, including those of earlier dictionaries."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sessions.store import bodies
from sessions.store.recap_bodies import recap_pack, recap_unpack
from sessions.store.recap_lines import recap_lines_pack, recap_lines_unpack

TEXTS = st.text(max_size=400).map(lambda text: bodies.json_bytes({"role": "user", "content": text * 3}))


@given(data=st.binary(max_size=300) | TEXTS, before=st.binary(max_size=300))
def test_compressed_data_is_returned_unchanged(data: bytes, before: bytes) -> None:
    assert bodies.unpack_after(bodies.pack_after(data, before), before) == data
    if not data.startswith(zstandard.FRAME_HEADER):  # JSON never does
        assert bodies.unpack(bodies.pack(data)) == data


@given(data=TEXTS)
def test_a_body_names_its_dictionary(data: bytes) -> None:
    for number, path in bodies.DICTIONARIES.items():
        dictionary = zstandard.ZstdCompressionDict(path.read_bytes())
        assert dictionary.dict_id() == number
        assert bodies.unpack(zstandard.ZstdCompressor(dict_data=dictionary).compress(data)) == data


def test_a_body_of_an_unknown_dictionary_is_rejected() -> None:
    with pytest.raises(bodies.UnknownDictionary):
        bodies.unpack(zstandard.ZstdCompressor().compress(b'{"role": "user", "content": "x"}'))


FIRST_USE = """
import sys, threading
from sessions.store import bodies

def pack(start):
    start.wait()
    for number in range(20):
        data = bodies.json_bytes({"content": f"{number} of many messages " * 200})
        assert bodies.unpack(bodies.pack(data)) == data

sys.setswitchinterval(1e-6)
for _ in range(80):
    bodies._newest_dictionary.cache_clear()
    start = threading.Barrier(4)
    threads = [threading.Thread(target=pack, args=[start]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


@pytest.mark.processes
def test_threads_may_compress_the_first_bodies_of_a_process_at_the_same_time() -> None:
    # In another process, because the failure would be a segmentation fault.
    subprocess.run([sys.executable, "-c", FIRST_USE], check=True)


MENTIONS = st.lists(st.tuples(st.text(max_size=8), st.integers(0, 9)).map(list), max_size=5)
ITEMS = st.lists(st.fixed_dictionaries({"text": st.text(max_size=8), "mentions": MENTIONS}), max_size=3)


@pytest.mark.slow
@given(entities=ITEMS, facts=ITEMS, reserve=MENTIONS, text=st.text(max_size=40))
def test_a_packed_recap_is_returned_unchanged(
    entities: list[Any], facts: list[Any], reserve: list[Any], text: str
) -> None:
    recap = {"first_turn": 1, "reserve": reserve, "facts": facts, "entities": entities}
    assert recap_unpack(recap_pack(recap, text.encode()), text.encode()) == recap


#: Also texts with line breaks of every kind, and with half of a surrogate pair.
SHOWN = st.text(st.sampled_from("ab\n\r\0\u2028\ud800é "), max_size=12)
LINES = st.lists(st.tuples(SHOWN, st.lists(st.integers(0, 99), max_size=3)).map(list), max_size=4)


@given(
    shown=SHOWN, sections=st.lists(st.tuples(SHOWN, LINES).map(list), max_size=3), text=st.text(max_size=40)
)
def test_packed_lines_of_a_recap_are_returned_unchanged(shown: str, sections: list[Any], text: str) -> None:
    lines = {"first_turn": 0, "last_turn": 9, "text": shown, "sections": sections}
    assert recap_lines_unpack(recap_lines_pack(lines, text.encode()), text.encode()) == lines
