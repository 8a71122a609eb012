"""Requests and answers of every call, recorded from a running server, for the OpenAPI schema."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

#: By operation: {"request": {name: body}, "response": {status: {name: body}}}.
EXAMPLES: Mapping[str, Any] = orjson.loads(Path(__file__).with_suffix(".json").read_bytes())
