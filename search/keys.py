"""Keys: the terms of a segment as numbers, with which a query finds the segments to read.

Keys depend on the project, so a query finds no segment of another project. Two terms can have the same key; a
segment is then read unnecessarily.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID
from zlib import crc32

from search.query import LEAST_PREFIX
from search.segments import Segment

_MASK = 0x7FFFFFFE


def project_salt(project_id: UUID) -> int:
    return crc32(project_id.bytes)


def term_key(salt: int, term: str) -> int:
    """Return the key of a term."""
    return _key(salt, term.encode())


def strong_key(salt: int, term: str) -> int:
    """Return the key of segments with a strong match for a term."""
    return _key(salt, term.encode()) | 1


def prefix_key(salt: int, prefix: str) -> int:
    """Return the key of segments with a term that begins with a prefix."""
    return _key(salt, b"\0p" + prefix.encode()[:LEAST_PREFIX])


def tool_key(salt: int, tool: str) -> int:
    """Return the key of segments with calls or results of a tool."""
    return _key(salt, b"\0t" + tool.lower().encode())


def error_key(salt: int) -> int:
    """Return the key of segments with errors."""
    return _key(salt, b"\0e")


def segment_keys(salt: int, segment: Segment) -> list[int]:
    """Return the keys of a segment."""
    header = segment.header
    keys = {_key(salt, term) for term in segment.terms}
    keys |= {_key(salt, term) | 1 for term in segment.strong}
    keys |= _prefix_keys(salt, segment.terms)
    keys |= {tool_key(salt, tool) for tool in set(header.tools) if tool}
    if any(header.errors):
        keys.add(error_key(salt))
    return sorted(keys)


def _prefix_keys(salt: int, terms: Iterable[bytes]) -> set[int]:
    starts = {term[:LEAST_PREFIX] for term in terms if len(term) >= LEAST_PREFIX}
    return {_key(salt, b"\0p" + start) for start in starts}


def _key(salt: int, data: bytes) -> int:
    return crc32(data, salt) & _MASK
