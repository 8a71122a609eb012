"""Prepared statements whose parameters have declared types.

psycopg chooses types by value: an integer by its size, so that the server would prepare the same statement
again for each combination. Where psycopg's conversions take too long (see `loop_connections`), the same types
give the parameters in Postgres's binary format.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID

import orjson
from psycopg import pq
from psycopg.types.json import Jsonb
from psycopg.types.numeric import Float8, Int2, Int4, Int8

_PLACEHOLDER = re.compile(r"%\((\w+)\)[sb]")

_int2 = struct.Struct(">h").pack
_int4 = struct.Struct(">i").pack
_int8 = struct.Struct(">q").pack
_float8 = struct.Struct(">d").pack
_array_head = struct.Struct(">iiIii").pack  # dimensions, has nulls, type of elements, length, first index
_empty_array = struct.Struct(">iiI").pack
_NULL = _int4(-1)
_POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)

Encoder = Callable[[Any], bytes]


def _array(oid: int, encode: Encoder) -> Encoder:
    def encode_array(values: Sequence[Any]) -> bytes:
        if not values:
            return _empty_array(0, 0, oid)
        parts = [_array_head(1, None in values, oid, len(values), 1)]
        for value in values:
            if value is None:
                parts.append(_NULL)
            else:
                data = encode(value)
                parts += (_int4(len(data)), data)
        return b"".join(parts)

    return encode_array


def _uuid(value: UUID) -> bytes:
    return value.bytes


def _bool(value: bool) -> bytes:
    return b"\1" if value else b"\0"


def _timestamptz(value: datetime) -> bytes:
    return _int8((value - _POSTGRES_EPOCH) // timedelta(microseconds=1))


def _jsonb(value: Any) -> bytes:
    return b"\1" + orjson.dumps(value)  # the version of the format, and the text


#: The object id of each type in Postgres's catalog, and how its values are encoded.
_TYPES: dict[str, tuple[int, Encoder]] = {
    "bool": (16, _bool),
    "bytea": (17, bytes),
    "int2": (21, _int2),
    "int4": (23, _int4),
    "int8": (20, _int8),
    "float8": (701, _float8),
    "text": (25, str.encode),
    "uuid": (2950, _uuid),
    "timestamptz": (1184, _timestamptz),
    "jsonb": (3802, _jsonb),
    "bool[]": (1000, _array(16, _bool)),
    "bytea[]": (1001, _array(17, bytes)),
    "int2[]": (1005, _array(21, _int2)),
    "int4[]": (1007, _array(23, _int4)),
    "int8[]": (1016, _array(20, _int8)),
    "text[]": (1009, _array(25, str.encode)),
    "uuid[]": (2951, _array(2950, _uuid)),
}


def _each(wrap: Callable[[Any], Any]) -> Callable[[Sequence[Any]], list[Any]]:
    return lambda values: [None if value is None else wrap(value) for value in values]


#: psycopg's wrappers for the types that it would not choose for a value.
_WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "int2": Int2,
    "int4": Int4,
    "int8": Int8,
    "float8": Float8,
    "jsonb": Jsonb,
    "int2[]": _each(Int2),
    "int4[]": _each(Int4),
    "int8[]": _each(Int8),
}


class Prepared:
    """A statement with parameters `%(name)s` of the given types.

    `sql` is the statement with numbered parameters, which have these `oids` and `formats`.
    """

    def __init__(self, name: str, statement: LiteralString, types: Mapping[str, str]) -> None:
        self.name = name.encode()
        names = list(dict.fromkeys(_PLACEHOLDER.findall(statement)))
        numbered = _PLACEHOLDER.sub(lambda match: f"${names.index(match[1]) + 1}", statement)
        self.sql = numbered.encode()
        self.oids = [_TYPES[types[name]][0] for name in names]
        self.formats = [pq.Format.BINARY] * len(names)
        self._names = names
        self._encoders = [(name, _TYPES[types[name]][1]) for name in names]
        self._wrappers = [(name, _WRAPPERS[types[name]]) for name in names if types[name] in _WRAPPERS]

    def encode(self, parameters: Mapping[str, Any]) -> list[bytes | None]:
        """Return the parameters for libpq, in the order of the statement."""
        return [
            None if (value := parameters[name]) is None else encode(value) for name, encode in self._encoders
        ]

    def wrap(self, parameters: Mapping[str, Any]) -> list[Any]:
        """Return the parameters for psycopg, in the order of the statement."""
        wrapped = dict(parameters)
        for name, wrap in self._wrappers:
            if wrapped[name] is not None:
                wrapped[name] = wrap(wrapped[name])
        return [wrapped[name] for name in self._names]
