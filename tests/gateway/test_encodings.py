"""Content encodings of recorded bodies."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard

from gateway.encodings import Unreadable, decoded

TEXT = b"".join(b"%d, " % number for number in range(5_000))
ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("name", ENCODERS)
def test_bodies_are_decoded(name: str) -> None:
    assert decoded(ENCODERS[name](TEXT), name) == TEXT
    assert decoded(ENCODERS[name](ENCODERS["gzip"](TEXT)), f"gzip, {name}") == TEXT
    assert decoded(ENCODERS[name](b""), name) == b""


@pytest.mark.parametrize("name", ENCODERS)
def test_a_body_that_was_cut_is_decoded_as_far_as_possible(name: str) -> None:
    body = ENCODERS[name](TEXT)
    found = decoded(body[: len(body) // 2], name)
    assert TEXT.startswith(found)


@pytest.mark.slow
def test_members_of_gzip_follow_each_other() -> None:
    assert decoded(gzip.compress(b"one ") + gzip.compress(b"two") + b"\0\0", "gzip") == b"one two"
    cut = gzip.compress(TEXT)[:-20]
    assert decoded(gzip.compress(b"one ") + cut, "gzip").startswith(b"one 0, 1, ")
    # A megabyte of tiny members, each of which must not be found by copying the others.
    assert decoded(gzip.compress(b"x") * 50_000, "gzip") == b"x" * 50_000


@pytest.mark.parametrize("name", ENCODERS)
def test_other_data_is_unreadable(name: str) -> None:
    with pytest.raises(Unreadable):
        decoded(b"\xff\xffnot encoded", name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODERS)
def test_a_body_that_decodes_to_too_much_takes_little_memory(name: str) -> None:
    body = ENCODERS[name](bytes(2**24))
    tracemalloc.start()
    with pytest.raises(Unreadable, match="too large"):
        decoded(body, name, most=2**14)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22
