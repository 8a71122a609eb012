"""Train the compression dictionary of message bodies: `python -m bench.dictionary FILE`.

Uses only text of this project: the sample session, and source files as tool outputs. A dictionary in use must
never change, because content compressed with it would become unreadable. Train a new one with the next number
and keep the old file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import zstandard

from sessions.services.samples.log import sample_log

ROOT = Path(__file__).resolve().parent.parent
SIZE = 65_536  # larger dictionaries had no benefit on real sessions
NUMBER = 1


def samples() -> Iterator[bytes]:
    for line in sample_log().data.splitlines():
        message = json.loads(line).get("message")
        if message:
            yield json.dumps({"role": message["role"], "content": message["content"]}).encode()
    for folder in ("accounts", "compaction", "contextapp", "sessions", "docs"):
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in {".py", ".md"}:
                block = {
                    "type": "tool_result",
                    "tool_use_id": "toolu_01",
                    "content": file.read_text()[:3_000],
                }
                yield json.dumps({"role": "user", "content": [block]}).encode()


def main() -> None:
    dictionary = zstandard.train_dictionary(SIZE, list(samples()), dict_id=NUMBER)
    Path(sys.argv[1]).write_bytes(dictionary.as_bytes())


if __name__ == "__main__":
    main()
