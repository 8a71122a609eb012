"""A fetched prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contextapp_client.errors import BadAnswer
from contextapp_client.types import Format, ManifestEntry

#: The fields that are the provider's; the rest of the answer is about them.
_PROVIDERS = ("system", "messages", "tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The prompt after `turn` (-1: before the first one), within `budget` input tokens where `fits`.

    `params` is what the provider's client takes: `messages.create(model=…, max_tokens=…, **prompt.params)`
    with Anthropic, the same of `chat.completions.create` with OpenAI. It is yours to change.
    """

    params: dict[str, Any]
    format: Format
    turn: int
    tokens: int
    raw_tokens: int
    budget: int
    occupancy: float
    fits: bool
    reason: str | None
    compactions: int
    manifest: tuple[ManifestEntry, ...] | None

    @classmethod
    def read(cls, data: bytes) -> Prompt:
        """The prompt of an answer's body. Raises `BadAnswer`."""
        try:
            value: Mapping[str, Any] = json.loads(data)
            manifest = value.get("manifest")
            return cls(
                params={name: value[name] for name in _PROVIDERS if value.get(name) is not None},
                format=value["format"],
                turn=value["turn"],
                tokens=value["tokens"],
                raw_tokens=value["raw_tokens"],
                budget=value["budget"],
                occupancy=value["occupancy"],
                fits=value["fits"],
                reason=value["reason"],
                compactions=value["compactions"],
                manifest=None if manifest is None else tuple(manifest),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadAnswer(f"this is no prompt: {error!r}") from None
