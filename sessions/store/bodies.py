"""How bodies lie in the database: as JSON bytes, compressed where that saves something."""

from __future__ import annotations

import hashlib
import json
import threading
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import zstandard

#: Larger bodies go to a `Blob`, where equal ones of a project are stored once (bytes of JSON).
BLOB_BYTES = 16_384

#: Below this a frame's header costs about what compression saves (bytes of JSON).
SMALLEST_COMPRESSED = 128

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"  # no JSON begins so, which is how the two are told apart
# Measured on 6,485 messages of real sessions (9.3 MB): level 3 alone stores 0.442 bytes a byte, with the
# dictionary 0.399, with it at level 6 0.377 for 0.03 ms more a message.
_LEVEL = 6

#: Frames name their dictionary, so a newer one can be added beside it; see `bench/dictionary.py`.
DICTIONARY = Path(__file__).with_name("dictionaries") / "1.zdict"

# A zstd context must not be used by two threads at once, and making one costs more than using it.
_local = threading.local()


def json_bytes(value: Any) -> bytes:
    """JSON of `value`. The standard library takes what orjson refuses: integers over 64 bits."""
    try:
        return orjson.dumps(value)
    except (orjson.JSONEncodeError, TypeError):
        return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def json_value(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def json_pretty(value: Any) -> str:
    """JSON as people read it."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def pack(data: bytes) -> bytes:
    if len(data) < SMALLEST_COMPRESSED:
        return data
    if not hasattr(_local, "compressor"):
        _local.compressor = zstandard.ZstdCompressor(level=_LEVEL, dict_data=_dictionary())
    packed: bytes = _local.compressor.compress(data)
    return packed if len(packed) < len(data) else data


def unpack(data: bytes | memoryview) -> bytes:
    data = bytes(data)
    if not data.startswith(_ZSTD_MAGIC):
        return data
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor(dict_data=_dictionary())
    unpacked: bytes = _local.decompressor.decompress(data)
    return unpacked


def pack_behind(data: bytes, before: bytes) -> bytes:
    """Packs `data` as what goes on behind `before`, most of which it repeats."""
    prefix = zstandard.ZstdCompressionDict(before, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    packed: bytes = zstandard.ZstdCompressor(level=_LEVEL, dict_data=prefix).compress(data)
    return packed


def unpack_behind(data: bytes | memoryview, before: bytes) -> bytes:
    prefix = zstandard.ZstdCompressionDict(before, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    unpacked: bytes = zstandard.ZstdDecompressor(dict_data=prefix).decompress(bytes(data))
    return unpacked


@cache
def _dictionary() -> zstandard.ZstdCompressionDict:
    dictionary = zstandard.ZstdCompressionDict(DICTIONARY.read_bytes())
    dictionary.precompute_compress(level=_LEVEL)
    return dictionary


def content_hash(data: bytes) -> bytes:
    """16 bytes that tell bodies apart; a blob, whose hash is its name, has the whole SHA-256."""
    return hashlib.blake2b(data, digest_size=16).digest()
