"""Read the entries of a zip archive that may be damaged, one at a time."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import zstandard

#: The beginning of an archive, whose first entry's name follows the local header.
MAGIC = b"PK\x03\x04"
_HEADER = struct.Struct("<4s5H3I2H")
_MAX_NAME = 1_000

#: Maximum size of a decompressed entry, as protection against decompression bombs.
LARGEST_ENTRY_BYTES = 1 << 28

_STORED, _DEFLATED, _ZSTD = 0, 8, 93


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file in an archive, which has not been read yet."""

    name: str
    offset: int  #: of its local header
    size: int  #: compressed


def is_archive(data: bytes, *folders: str) -> bool:
    """Return whether this is an archive whose first entry is a file or folder with one of the names."""
    if not data.startswith(MAGIC) or len(data) < _HEADER.size:
        return False
    length = min(_HEADER.unpack_from(data)[9], _MAX_NAME)
    name = data[_HEADER.size : _HEADER.size + length].decode("utf-8", "replace")
    return name.startswith(folders)


def entries(data: bytes) -> tuple[list[Entry], bool]:
    """Return the files in an archive, and whether it is complete.

    A truncated archive has no directory, which is at its end. Its entries are found by their headers. So are
    those of an archive whose entries overlap: many entries for the same bytes could take days to decompress.
    If a file was written twice, the later one applies.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found = [
                Entry(name=info.filename, offset=info.header_offset, size=info.compress_size)
                for info in archive.infolist()
            ]
        if _is_overlapping(found):
            raise zipfile.BadZipFile
        return list({entry.name: entry for entry in found}.values()), True
    except (zipfile.BadZipFile, ValueError, OSError, struct.error, NotImplementedError):
        return list({entry.name: entry for entry in _by_header(data)}.values()), False


def _is_overlapping(found: Iterable[Entry]) -> bool:
    ordered = sorted(found, key=lambda entry: entry.offset)
    ends = (entry.offset + _HEADER.size + entry.size for entry in ordered)
    return any(entry.offset < end for entry, end in zip(ordered[1:], ends, strict=False))


def entry_data(data: bytes, entry: Entry) -> bytes:
    """Return the decompressed content of a file. Raises ValueError if it is damaged or too large."""
    try:
        method, name_length, extra_length = _header(data, entry.offset)
        start = entry.offset + _HEADER.size + name_length + extra_length
        packed = data[start : start + entry.size]
        if len(packed) < entry.size:
            raise ValueError("the archive is truncated")
        content = _decompressed(packed, method)
    except (struct.error, zlib.error, zstandard.ZstdError) as error:
        raise ValueError(f"cannot be decompressed: {error}") from error
    if len(content) > LARGEST_ENTRY_BYTES:
        raise ValueError(f"larger than {LARGEST_ENTRY_BYTES >> 20} MiB")
    return content


def _decompressed(packed: bytes, method: int) -> bytes:
    if method == _STORED:
        return packed
    if method == _DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, LARGEST_ENTRY_BYTES + 1)
    if method == _ZSTD:
        reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        return reader.read(LARGEST_ENTRY_BYTES + 1)
    raise ValueError(f"compression method {method} is not supported")


def _header(data: bytes, offset: int) -> tuple[int, int, int]:
    """Return the compression method in a local header, and the lengths of the name and the extra field."""
    magic, _, _, method, _, _, _, _, _, name_length, extra_length = _HEADER.unpack_from(data, offset)
    if magic != MAGIC:
        raise ValueError("the header of the file is damaged")
    return method, name_length, extra_length


def _by_header(data: bytes) -> Iterator[Entry]:
    """Yield the entries up to the first gap. Programs write them without gaps."""
    offset = 0
    while data.startswith(MAGIC, offset) and offset + _HEADER.size <= len(data):
        fields = _HEADER.unpack_from(data, offset)
        size, name_length, extra_length = fields[7], fields[9], fields[10]
        start = offset + _HEADER.size
        name = data[start : start + name_length].decode("utf-8", "replace")
        yield Entry(name=name, offset=offset, size=size)
        offset = start + name_length + extra_length + size
