"""Explain why no importer recognizes a file."""

from __future__ import annotations

import orjson

from importers.base import LogFile
from importers.jsonlines import first_value, text_bytes

#: The reason if there is no better one.
UNSUPPORTED = "The file is not in a supported format."

_COMPRESSED = "The file is compressed. Decompress it, or import it with `manage.py import_sessions`."
_ARCHIVE = "The file is an archive or compressed. Unpack it, and import the files in it."

#: Reasons by the first bytes of a file.
_MAGIC = {
    b"\x1f\x8b": _COMPRESSED,
    b"\x28\xb5\x2f\xfd": _COMPRESSED,
    b"PK\x03\x04": _ARCHIVE,
    b"PK\x05\x06": _ARCHIVE,
    b"\xfd7zXZ": _ARCHIVE,
    b"BZh": _ARCHIVE,
    b"7z\xbc\xaf": _ARCHIVE,
    b"PAR1": "The file is a Parquet file. Convert it to JSON Lines; see the guide on importing logs.",
    b"SQLite format 3\x00": "The file is a database. Import it with `manage.py import_sessions`.",
}

#: Bytes that are checked for NUL, which UTF-8 text does not contain.
_BEGINNING = 1_000


def unrecognized_reason(log: LogFile) -> str:
    """Return why the file is in no supported format, as one or two sentences."""
    if reason := next((reason for magic, reason in _MAGIC.items() if log.data.startswith(magic)), None):
        return reason
    beginning = text_bytes(log.data).lstrip(b" \t\r\n\x00")[:_BEGINNING]
    if not beginning:
        return "The file is empty, or contains only whitespace."
    if b"\x00" in beginning:
        return "The file is binary, or its encoding is neither UTF-8 nor UTF-16 with a byte order mark."
    if beginning.startswith((b"{", b"[")) and first_value(log) is None:
        try:
            orjson.loads(text_bytes(log.data).decode("utf-8", "replace"))
        except orjson.JSONDecodeError as error:
            return f"The file is not valid JSON: {error}."
    return UNSUPPORTED
