"""A segment: the inverted index of consecutive messages of one session.

A segment holds at most `MOST_MESSAGES` messages, so that the place of a message in it is one byte. It has a
header with the properties of each message, and blocks with the terms in order of their bytes. A query reads
the header and the blocks that contain its terms.

A block is compressed. It contains the number of terms, the length of the term list, the lengths of the
postings, the terms separated by line breaks, and the postings: the places of the messages, followed by the
counts if one of them is not 1 (the lowest bit of the length).
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat, takewhile

import orjson
import zstandard

from search.scoring import STRONG, weight

MOST_MESSAGES = 256
#: Bytes of terms and postings in a block, before compression: so few that Postgres stores it within its row,
#: and that a query decompresses little besides its term.
_BLOCK_BYTES = 2_500
_LEVEL = 9
#: A decompressor can be reused, but not by two threads at the same time.
_local = threading.local()
#: The least count that makes a term a strong match, by the length code of the message; 256 if none does.
_STRONG_COUNTS = [
    next((count for count in range(1, 256) if weight(count, code) >= STRONG), 256) for code in range(256)
]
#: Bytes of postings by the recorded length, whose lowest bit indicates that they have counts.
_SIZES = [(length >> 1) << (length & 1) for length in range(2 * MOST_MESSAGES + 2)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The indexed form of a message. `counts` maps its terms to their numbers of occurrences."""

    role: str
    tool: str
    is_error: bool
    length: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The properties of the messages of a segment, each a list by place. `lengths` are length codes."""

    roles: Sequence[str]
    tools: Sequence[str]
    errors: Sequence[bool]
    lengths: bytes

    def __len__(self) -> int:
        return len(self.lengths)

    def pack(self) -> bytes:
        names = sorted({*self.roles, *self.tools})
        codes = {name: code for code, name in enumerate(names)}
        value = {
            "names": names,
            "roles": [codes[role] for role in self.roles],
            "tools": [codes[tool] for tool in self.tools],
            "errors": [place for place, is_error in enumerate(self.errors) if is_error],
            "lengths": list(self.lengths),
        }
        return zstandard.compress(orjson.dumps(value), _LEVEL)

    @classmethod
    def unpack(cls, data: bytes) -> Header:
        value = orjson.loads(_decompress(data))
        names, lengths = value["names"], bytes(value["lengths"])
        errors = [False] * len(lengths)
        for place in value["errors"]:
            errors[place] = True
        return cls(
            roles=[names[code] for code in value["roles"]],
            tools=[names[code] for code in value["tools"]],
            errors=errors,
            lengths=lengths,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """An encoded segment. `blocks` are pairs of the first term and the data, in order.

    `strong` are the terms for which a message is a strong match.
    """

    header: Header
    blocks: Sequence[tuple[bytes, bytes]]
    terms: Sequence[bytes]
    strong: frozenset[bytes]


#: The places of messages, and the counts of a term in them.
Postings = tuple[bytes, bytes]


def header_of(documents: Sequence[Document]) -> Header:
    return Header(
        roles=[document.role for document in documents],
        tools=[document.tool for document in documents],
        errors=[document.is_error for document in documents],
        lengths=bytes(document.length for document in documents),
    )


def segment_build(
    documents: Sequence[Document], *, after: Sequence[tuple[Header, Iterable[bytes]]] = ()
) -> Segment:
    """Encode the messages of a segment, in order. `after` are headers and blocks of segments to merge: those
    of the messages that precede the documents.
    """
    tally = _Tally()
    for header, blocks in after:
        tally.add_segment(header, blocks)
    tally.add_documents(documents)
    return tally.encode()


def _joined(first: Header, second: Header) -> Header:
    return Header(
        roles=[*first.roles, *second.roles],
        tools=[*first.tools, *second.tools],
        errors=[*first.errors, *second.errors],
        lengths=first.lengths + second.lengths,
    )


class _Tally:
    """The postings of messages: the places of each term, and its counts where a message repeats it."""

    def __init__(self) -> None:
        self._header = header_of(())
        self._places: defaultdict[str, bytearray] = defaultdict(bytearray)
        self._repeated: defaultdict[str, dict[int, int]] = defaultdict(dict)

    def add_documents(self, documents: Sequence[Document]) -> None:
        places, repeated = self._places, self._repeated
        for place, document in enumerate(documents, len(self._header)):
            for term, count in document.counts.items():
                places[term].append(place)
                if count > 1:
                    repeated[term][place] = count
        self._header = _joined(self._header, header_of(documents))

    def add_segment(self, header: Header, blocks: Iterable[bytes]) -> None:
        offset = len(self._header)
        moved = bytes((place + offset) % MOST_MESSAGES for place in range(MOST_MESSAGES))
        for packed in blocks:
            block, at = _Block.read(packed), 0
            for term, length in zip(block.names.decode().split("\n"), block.lengths, strict=True):
                middle, end = at + (length >> 1), at + _SIZES[length]
                found = block.data[at:middle].translate(moved)
                self._places[term] += found
                if middle < end:
                    counts = zip(found, block.data[middle:end], strict=True)
                    self._repeated[term].update((place, count) for place, count in counts if count > 1)
                at = end
        self._header = _joined(self._header, header)

    def encode(self) -> Segment:
        names = sorted(self._places)  # also the order of their bytes
        if not names:
            return Segment(header=self._header, blocks=(), terms=(), strong=frozenset())
        terms = "\n".join(names).encode().split(b"\n")
        pieces: list[bytes | bytearray] = []
        lengths, strong = array("H"), []
        for name, term in zip(names, terms, strict=True):
            places, repeated = self._places[name], self._repeated.get(name)
            if repeated is None:
                lengths.append(len(places) << 1)
                pieces.append(places)
            else:
                lengths.append(len(places) << 1 | 1)
                pieces.append(places + bytes(map(repeated.get, places, repeat(1))))
                if self._is_strong(repeated):
                    strong.append(term)
        blocks = list(_blocks(terms, lengths, pieces))
        return Segment(header=self._header, blocks=blocks, terms=terms, strong=frozenset(strong))

    def _is_strong(self, repeated: Mapping[int, int]) -> bool:
        # A term that occurs once is never a strong match.
        lengths = self._header.lengths
        return any(count >= _STRONG_COUNTS[lengths[place]] for place, count in repeated.items())


def _blocks(
    terms: Sequence[bytes], lengths: array[int], pieces: Sequence[bytes | bytearray]
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the first term and the data of each block. `pieces` are the postings as stored."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    sizes = [len(term) + (length >> 1) + 2 for term, length in zip(terms, lengths, strict=True)]
    ends = list(accumulate(sizes))
    start = full = 0
    while start < len(terms):
        end = bisect_left(ends, full + _BLOCK_BYTES) + 1
        names, full = b"\n".join(terms[start:end]), ends[min(end, len(terms)) - 1]
        head = array("I", (len(lengths[start:end]), len(names))).tobytes()
        data = head + lengths[start:end].tobytes() + names + b"".join(pieces[start:end])
        yield terms[start], compressor.compress(data)
        start = end


@dataclass(frozen=True, slots=True)
class _Block:
    """A block. `names` are its terms separated by line breaks."""

    names: bytes
    lengths: array[int]
    data: bytes

    @classmethod
    def read(cls, packed: bytes) -> _Block:
        raw = _decompress(packed)
        count, size = array("I", raw[:8])
        start = 8 + 2 * count
        return cls(
            names=raw[start : start + size],
            lengths=array("H", raw[8:start]),
            data=raw[start + size :],
        )

    def offset(self, index: int) -> int:
        return sum(map(_SIZES.__getitem__, self.lengths[:index]))

    def postings(self, index: int, offset: int) -> Postings:
        number = self.lengths[index] >> 1
        places = self.data[offset : offset + number]
        if self.lengths[index] & 1:
            return places, self.data[offset + number : offset + 2 * number]
        return places, b"\1" * number

    def items(self, first: int = 0) -> Iterator[tuple[bytes, Postings]]:
        """Yield the terms from an index on, with their postings."""
        offset = self.offset(first)
        for index, name in enumerate(self.names.split(b"\n")[first:], first):
            yield name, self.postings(index, offset)
            offset += _SIZES[self.lengths[index]]


def block_find(packed: bytes, term: bytes) -> Postings | None:
    """Return the postings of a term in a block, or None if the block does not contain it."""
    block = _Block.read(packed)
    names = b"\n%b\n" % block.names
    at = names.find(b"\n%b\n" % term)
    if at < 0:
        return None
    index = names.count(b"\n", 0, at)
    return block.postings(index, block.offset(index))


def block_find_prefix(packed: bytes, prefix: bytes) -> list[Postings]:
    """Return the postings of all terms of a block that begin with a prefix."""
    block = _Block.read(packed)
    terms = block.names.split(b"\n")
    first = bisect_left(terms, prefix)
    found = takewhile(lambda item: item[0].startswith(prefix), block.items(first))
    return [postings for _, postings in found]


def _decompress(data: bytes) -> bytes:
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor()
    raw: bytes = _local.decompressor.decompress(data)
    return raw
