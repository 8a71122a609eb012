"""Decode the content encodings of bodies, within a limit."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress

import brotli
import zstandard

#: Maximum size of decoded bodies. Larger ones are not parsed.
_MOST_BYTES = 256 * 1024 * 1024

#: Bytes that are decoded at a time, where the decoder reserves memory for all that it may return.
_CHUNK = 2**20


class Unreadable(ValueError):
    """A body cannot be decoded, or is too large or not a JSON object."""


def decoded_or_empty(data: bytes, encoding: str, *, most: int = _MOST_BYTES) -> bytes:
    """Return the decoded body, b"" if it cannot be decoded, or decodes to more than `most` bytes."""
    try:
        return decoded(data, encoding, most=most)
    except Unreadable:
        return b""


def decoded(data: bytes, encoding: str, *, most: int = _MOST_BYTES) -> bytes:
    """Decode a body's content encodings in reverse order, as far as it was received. Raises `Unreadable`.

    Takes memory in proportion to `most`, the maximum size in bytes, even if the body decodes to much more.
    """
    for name in reversed([part.strip().lower() for part in encoding.split(",") if part.strip()]):
        if name == "identity":
            continue
        decode = _DECODERS.get(name)
        if decode is None:
            raise Unreadable(f"unknown content encoding {name!r}")
        try:
            data = decode(data, most + 1)
        except (zlib.error, gzip.BadGzipFile, brotli.error, zstandard.ZstdError) as error:
            raise Unreadable(f"the body is not valid {name}: {error}") from None
        if len(data) > most:
            raise Unreadable("the body is too large")
    return data


def _gzip(data: bytes, most: int) -> bytes:
    """Decode gzip, which may have several members. The time is in proportion to the data, however many."""
    decoded, file = bytearray(), gzip.GzipFile(fileobj=io.BytesIO(data))
    with suppress(EOFError):  # not completely received
        while part := file.read1(min(most - len(decoded), _CHUNK)):
            decoded += part
    return bytes(decoded)


def _deflate(data: bytes, most: int) -> bytes:
    """Decode deflate, which some servers send without its header."""
    wbits = 15 if data[:1] and data[0] & 0x0F == 8 else -15
    return zlib.decompressobj(wbits=wbits).decompress(data, most)


def _brotli(data: bytes, most: int) -> bytes:
    return bytes(brotli.Decompressor().process(data, output_buffer_limit=most))


def _zstd(data: bytes, most: int) -> bytes:
    decoder = zstandard.ZstdDecompressor()
    decoded, reader = bytearray(), decoder.stream_reader(data, read_across_frames=True)
    while part := reader.read(min(most - len(decoded), _CHUNK)):
        decoded += part
    return bytes(decoded)


#: Functions that decode at most a number of bytes.
_DECODERS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
