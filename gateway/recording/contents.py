"""Read a recorded call: its decoded request, and the answer in its response."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import brotli
import orjson
import zstandard

from gateway.calls import Call
from gateway.providers import PROVIDERS, Answer
from gateway.sse import events

#: Maximum size of decoded bodies. Larger ones are not parsed.
_MOST_BYTES = 256 * 1024 * 1024


class Unreadable(ValueError):
    """A body cannot be decoded, or is not a JSON object."""


def request_of(call: Call) -> tuple[bytes, Mapping[str, Any]]:
    """Return the decoded request body and its JSON object. Raises `Unreadable`."""
    data = decoded(call.body, call.headers.get("content-encoding", ""))
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise Unreadable(f"the request is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Unreadable("the request is not a JSON object")
    return data, value


def answer_of(call: Call) -> Answer:
    """Return the answer. It has no message if the response is an error or incomplete."""
    provider = PROVIDERS[call.provider]
    if not 200 <= call.status < 300:
        return Answer()
    try:
        data = decoded(call.response, call.response_encoding, is_whole=call.is_complete)
        if call.response_type.startswith("text/event-stream"):
            return provider.read_events(call.endpoint, list(events(data)))
        value = orjson.loads(data)
    except (Unreadable, orjson.JSONDecodeError):
        return Answer()
    return provider.read_body(call.endpoint, value) if isinstance(value, dict) else Answer()


def response_of(call: Call) -> bytes:
    """Return the decoded response body, b"" if it cannot be decoded."""
    try:
        return decoded(call.response, call.response_encoding, is_whole=call.is_complete)
    except Unreadable:
        return b""


def decoded(data: bytes, encoding: str, *, is_whole: bool = True) -> bytes:
    """Decode a body's content encodings in reverse order. Raises `Unreadable`."""
    for name in reversed([part.strip().lower() for part in encoding.split(",") if part.strip()]):
        if name == "identity":
            continue
        decode = _DECODERS.get(name)
        if decode is None:
            raise Unreadable(f"unknown content encoding {name!r}")
        try:
            data = decode(data, is_whole)
        except (zlib.error, brotli.error, zstandard.ZstdError, EOFError, OSError) as error:
            raise Unreadable(f"the body is not valid {name}: {error}") from None
        if len(data) > _MOST_BYTES:
            raise Unreadable("the body is too large")
    return data


def _gzip(data: bytes, is_whole: bool) -> bytes:
    return gzip.decompress(data) if is_whole else zlib.decompressobj(wbits=31).decompress(data, _MOST_BYTES)


def _deflate(data: bytes, _is_whole: bool) -> bytes:
    """Decode deflate, which some servers send without its header."""
    wbits = 15 if data[:1] and data[0] & 0x0F == 8 else -15
    return zlib.decompressobj(wbits=wbits).decompress(data, _MOST_BYTES)


def _brotli(data: bytes, _is_whole: bool) -> bytes:
    return bytes(brotli.Decompressor().process(data))


def _zstd(data: bytes, _is_whole: bool) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(data)


_DECODERS: Mapping[str, Callable[[bytes, bool], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
