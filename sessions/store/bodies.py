"""Compression of message bodies, which are stored as JSON bytes."""

from __future__ import annotations

import hashlib
import json
import threading
from functools import cache
from pathlib import Path
from typing import Any

import zstandard

from compaction.jsontext import dumps_bytes, loads_bytes

#: Larger bodies are stored in a `Blob`, once per project (bytes of JSON).
BLOB_BYTES = 16_384

#: Smaller bodies are not compressed: the header takes about as much as compression saves (bytes of JSON).
SMALLEST_COMPRESSED = 128

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"  # no JSON value begins with these bytes
# Measured on messages of real coding sessions: these parameters compress to 0.377 of the size in the time of
# level 6 (0.378), level 9 to 0.374 in 1.5 times the time. On source code in `bench`, they compress to 0.272,
# level 6 to 0.282 and level 9 to 0.271.
_PARAMETERS = zstandard.ZstdCompressionParameters(
    window_log=21,
    chain_log=17,
    hash_log=17,
    search_log=5,
    min_match=5,
    target_length=16,
    strategy=zstandard.STRATEGY_LAZY,
    write_dict_id=True,
)
# For texts that mostly repeat others.
_LEVEL_AFTER = 6

#: The dictionaries by number; the last one is used for compression. Compressed bodies contain the number of
#: their dictionary. See `bench/dictionary.py`.
DICTIONARIES = {
    int(path.stem): path for path in sorted(Path(__file__).with_name("dictionaries").glob("*.zdict"))
}

#: Convert bodies and other stored values to JSON bytes and back.
json_bytes = dumps_bytes
json_value = loads_bytes

# A zstd context must not be shared by threads, and creating one takes longer than using it.
_local = threading.local()
# Preparing a dictionary again frees what other threads compress with.
_dictionary_lock = threading.Lock()


class Placeholder(bytes):
    """The JSON of a message that takes the place of one whose content is lost."""


class UnknownDictionary(ValueError):
    """The data was compressed with a dictionary of a newer version, or by `pack_after`."""


def json_pretty(value: Any) -> str:
    """Return indented JSON for display."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def pack(data: bytes) -> bytes:
    if len(data) < SMALLEST_COMPRESSED:
        return data
    if not hasattr(_local, "compressor"):
        with _dictionary_lock:
            dictionary = _newest_dictionary()
        _local.compressor = zstandard.ZstdCompressor(dict_data=dictionary, compression_params=_PARAMETERS)
    packed: bytes = _local.compressor.compress(data)
    return packed if len(packed) < len(data) else data


def unpack(data: bytes | memoryview) -> bytes:
    """Return the data that `pack` compressed, now or in an earlier version. Raises `UnknownDictionary`."""
    if not isinstance(data, bytes):
        data = bytes(data)
    if not data.startswith(_ZSTD_MAGIC):
        return data
    if not hasattr(_local, "decompressors"):
        _local.decompressors = {}
    number = zstandard.get_frame_parameters(data).dict_id
    decompressor = _local.decompressors.get(number)
    if decompressor is None:
        if number not in DICTIONARIES:
            raise UnknownDictionary(f"the data was compressed with the unknown dictionary {number}")
        decompressor = zstandard.ZstdDecompressor(dict_data=_dictionary(number))
        _local.decompressors[number] = decompressor
    unpacked: bytes = decompressor.decompress(data)
    return unpacked


def pack_after(data: bytes, before: bytes) -> bytes:
    """Compress `data` with `before` as the dictionary, because it repeats most of it."""
    prefix = zstandard.ZstdCompressionDict(before, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    packed: bytes = zstandard.ZstdCompressor(level=_LEVEL_AFTER, dict_data=prefix).compress(data)
    return packed


def unpack_after(data: bytes | memoryview, before: bytes) -> bytes:
    prefix = zstandard.ZstdCompressionDict(before, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    unpacked: bytes = zstandard.ZstdDecompressor(dict_data=prefix).decompress(bytes(data))
    return unpacked


@cache
def _dictionary(number: int) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(DICTIONARIES[number].read_bytes())


@cache
def _newest_dictionary() -> zstandard.ZstdCompressionDict:
    dictionary = _dictionary(max(DICTIONARIES))
    dictionary.precompute_compress(compression_params=_PARAMETERS)
    return dictionary


def content_hash(data: bytes) -> bytes:
    """Return a hash of 16 bytes to compare contents. Blobs are named by their SHA-256 instead."""
    return hashlib.blake2b(data, digest_size=16).digest()
