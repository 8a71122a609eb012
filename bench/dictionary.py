"""Train the compression dictionary of message bodies: `python -m bench.dictionary FILE NUMBER`.

Uses only text of this project: the sample session, and source files in the shapes in which coding agents send
them, as tool calls and outputs of each dialect. A dictionary in use must never change, because content
compressed with it would become unreadable. Train a new one with the next number, and keep the old file.
"""

from __future__ import annotations

import argparse
import difflib
import json
import random
from collections.abc import Iterator
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import orjson
import zstandard

from compaction.policy import PRESETS
from sessions.services.samples.claude_code import sample_log

ROOT = Path(__file__).resolve().parent.parent
#: Bytes. On real sessions, 192 KB gain less than 1% over 110 KB.
SIZE = 112_640

_SUFFIXES = {".py", ".md", ".html", ".js", ".css", ".toml", ".yml", ".sh"}
_ID_CHARACTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789"


class Samples:
    """Messages in the shapes of the dialects, with and without spaces after separators. Deterministic."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def all(self) -> Iterator[bytes]:
        for policy in PRESETS.values():  # every compaction stores its policy
            yield from repeat(orjson.dumps(policy.to_json()), 50)
        for line in sample_log().data.splitlines():
            if message := json.loads(line).get("message"):
                yield from _both({"role": message["role"], "content": message["content"]})
        for file in sorted(ROOT.rglob("*")):
            name = file.relative_to(ROOT)
            is_ours = not any(part == "vendor" or part.startswith(".") for part in name.parts)
            if is_ours and file.suffix in _SUFFIXES and file.is_file():
                yield from self._file(str(name), file.read_text())

    def _file(self, name: str, text: str) -> Iterator[bytes]:
        """Yield a file as read, searched and edited."""
        path, lines = f"/workspace/project/{name}", text.splitlines()
        yield from _both(self._output(text[:3_000]))
        start = self._random.randrange(max(1, len(lines) - 40))
        call = self._call("Read", {"file_path": path, "offset": start, "limit": 60})
        intent = {"type": "text", "text": f"Let me look at `{name}` to see how it works."}
        yield orjson.dumps({"role": "assistant", "content": [intent, call]})
        numbered = enumerate(lines[start : start + 60], start + 1)
        yield orjson.dumps(self._output("\n".join(f"{number:6}\u2192{line}" for number, line in numbered)))
        at = self._random.randrange(max(1, len(lines) - 8))
        old, new = lines[at : at + 6], [*lines[at : at + 3], "    # changed", *lines[at + 3 : at + 6]]
        edit = {"file_path": path, "old_string": "\n".join(old), "new_string": "\n".join(new)}
        yield orjson.dumps({"role": "assistant", "content": [self._call("Edit", edit)]})
        diff = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="")
        head = f"diff --git a/{name} b/{name}\nindex 3f2a91c..8d1e0b4 100644"
        yield from self._openai(f"cd /workspace/project && git diff {name}", "\n".join([head, *diff]))
        found = (
            f"{name}:{n}:{line}" for n, line in enumerate(lines, 1) if "def " in line or "class " in line
        )
        yield from self._openai(f"grep -rn 'def ' {name} | head -20", "\n".join(islice(found, 20)))

    def _openai(self, command: str, output: str) -> Iterator[bytes]:
        """Yield a shell command and its output in the dialects of OpenAI."""
        id, arguments = f"call_{self._id()}", json.dumps({"command": command})
        function = {"name": "bash", "arguments": arguments}
        calls = [{"id": id, "type": "function", "function": function}]
        yield from _both({"role": "assistant", "content": None, "tool_calls": calls})
        yield from _both({"role": "tool", "tool_call_id": id, "content": output})
        yield orjson.dumps({"type": "function_call", "call_id": id, "name": "shell", "arguments": arguments})
        yield orjson.dumps({"type": "function_call_output", "call_id": id, "output": output})

    def _output(self, text: str) -> dict[str, Any]:
        block = {"type": "tool_result", "tool_use_id": f"toolu_01{self._id()}", "content": text}
        return {"role": "user", "content": [block]}

    def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"type": "tool_use", "id": f"toolu_01{self._id()}", "name": tool, "input": arguments}

    def _id(self) -> str:
        return "".join(self._random.choices(_ID_CHARACTERS, k=22))


def _both(value: Any) -> Iterator[bytes]:
    yield orjson.dumps(value)
    yield json.dumps(value).encode()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("number", type=int)
    options = parser.parse_args()
    dictionary = zstandard.train_dictionary(SIZE, list(Samples(1).all()), dict_id=options.number)
    options.file.write_bytes(dictionary.as_bytes())


if __name__ == "__main__":
    main()
