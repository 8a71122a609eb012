"""Example requests and responses of every endpoint for the OpenAPI schema, recorded from a real server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from django.apps import apps

#: By operation id: {"request": {name: body}, "response": {status: {name: body}}}, and the "media_type" of a
#: response that is not JSON.
EXAMPLES: Mapping[str, Any] = {
    name: example
    for app in apps.get_app_configs()
    for path in sorted(Path(app.path).glob("api/examples*.json"))
    for name, example in orjson.loads(path.read_bytes()).items()
}
