"""Requests and answers of every call, recorded from a running server, for the OpenAPI schema."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

#: By operation: {"request": {name: body}, "response": {status: {name: body}}}.
EXAMPLES: Mapping[str, Any] = {
    name: example
    for path in sorted(Path(__file__).parent.glob("examples*.json"))
    for name, example in orjson.loads(path.read_bytes()).items()
}
