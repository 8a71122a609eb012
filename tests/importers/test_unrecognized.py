"""Files that no importer recognizes, and unusual file names."""

from __future__ import annotations

import bz2
import gzip

import orjson
import pytest

from importers.base import LogFile
from importers.registry import IMPORTERS, log_items, recognize
from importers.unrecognized import unrecognized_reason
from tests.importers.logs import jsonl, user

CHAT = orjson.dumps({"messages": [{"role": "user", "content": "List the files."}]})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\0\n \r\n", "contains only whitespace"),
        (gzip.compress(CHAT, mtime=0), "is compressed"),
        (bz2.compress(CHAT), "is an archive or compressed"),
        (jsonl(user("Hi", "u1")).data.decode().encode("utf-16-le"), "neither UTF-8 nor UTF-16"),
        (bytes(range(256)) * 2, "is binary"),
        (b"\n" + CHAT[:-3], "not valid JSON: unexpected end of data: line 2 column 5"),
        (b'{"messages": }', "not valid JSON: "),
        (CHAT.replace(b".", b"\xff")[:-3], "not valid JSON: unexpected end of data: line 1 column 5"),
        (b"[" * 100_000 + b"]" * 100_000, "not valid JSON: "),
        (b'{"name": "package", "version": "1.0.0"}', "not in a supported format"),
        (b'{"a": 1}\n{"a": 2}\n', "not in a supported format"),
        (b"A text.\n", "not in a supported format"),
    ],
)
def test_the_reason_is_specific(data: bytes, reason: str) -> None:
    log = LogFile(name="log.json", data=data)
    assert recognize(log) is None
    assert reason in unrecognized_reason(log)


@pytest.mark.parametrize(
    ("name", "id"), [(".run.json", "run"), ("....", "log"), ("////", "log"), ("a/b.c.json", "b"), ("", "log")]
)
def test_every_file_name_gives_an_id(name: str, id: str) -> None:
    [session] = log_items(IMPORTERS["openai-chat"], LogFile(name=name, data=CHAT))
    assert session.external_id == id
