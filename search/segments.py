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
from itertools import takewhile

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
#: Bytes of postings by the recorded length, whose lowest bit says that they have counts.
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


def segment_build(documents: Sequence[Document]) -> Segment:
    """Encode the messages of a segment, in order."""
    places: defaultdict[str, bytearray] = defaultdict(bytearray)
    counts: defaultdict[str, bytearray] = defaultdict(bytearray)
    for place, document in enumerate(documents):
        for term, count in document.counts.items():
            places[term].append(place)
            counts[term].append(count)
    return _encode(header_of(documents), {t.encode(): (bytes(places[t]), bytes(counts[t])) for t in places})


def segment_merge(parts: Sequence[tuple[Header, Iterable[bytes]]]) -> Segment:
    """Encode one segment from the headers and blocks of consecutive ones."""
    merged: defaultdict[bytes, list[bytearray]] = defaultdict(lambda: [bytearray(), bytearray()])
    roles: list[str] = []
    tools: list[str] = []
    errors: list[bool] = []
    lengths = b""
    for header, blocks in parts:
        offset = len(lengths)
        for block in blocks:
            for term, (places, counts) in block_items(block):
                known = merged[term]
                known[0] += bytes(place + offset for place in places) if offset else places
                known[1] += counts
        roles += header.roles
        tools += header.tools
        errors += header.errors
        lengths += header.lengths
    header = Header(roles=roles, tools=tools, errors=errors, lengths=lengths)
    return _encode(header, {term: (bytes(p), bytes(c)) for term, (p, c) in merged.items()})


def _encode(header: Header, postings: Mapping[bytes, Postings]) -> Segment:
    terms = sorted(postings)
    strong = frozenset(t for t in terms if _is_strong(postings[t], header.lengths))
    return Segment(header=header, blocks=list(_blocks(terms, postings)), terms=terms, strong=strong)


def _is_strong(postings: Postings, lengths: bytes) -> bool:
    # A term that occurs once is never a strong match.
    if postings[1].count(1) == len(postings[1]):
        return False
    return any(weight(count, lengths[place]) >= STRONG for place, count in zip(*postings, strict=True))


def _blocks(terms: Sequence[bytes], postings: Mapping[bytes, Postings]) -> Iterator[tuple[bytes, bytes]]:
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    start = size = 0
    for at, term in enumerate(terms):
        size += len(term) + len(postings[term][0]) + 2
        if size >= _BLOCK_BYTES or at == len(terms) - 1:
            chunk = terms[start : at + 1]
            yield chunk[0], compressor.compress(_block(chunk, postings))
            start, size = at + 1, 0


def _block(terms: Sequence[bytes], postings: Mapping[bytes, Postings]) -> bytes:
    lengths, data = array("H"), bytearray()
    for term in terms:
        places, counts = postings[term]
        repeated = counts.count(1) != len(counts)
        lengths.append(len(places) << 1 | repeated)
        data += places + counts if repeated else places
    names = b"\n".join(terms)
    return array("I", (len(terms), len(names))).tobytes() + lengths.tobytes() + names + data


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


def block_items(packed: bytes) -> Iterator[tuple[bytes, Postings]]:
    """Yield the terms of a block with their postings, in order."""
    return _Block.read(packed).items()


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
