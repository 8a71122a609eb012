"""Fetched prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contextapp_client.errors import UnexpectedResponse
from contextapp_client.payloads import provider_fields
from contextapp_client.steps import load_json
from contextapp_client.types import Format, ManifestEntry, Reconciliation

#: The fields to pass to the provider. The other fields describe the prompt.
_PROVIDER_FIELDS = ("system", "messages", "tools", "context_management", "betas")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The prompt after `turn` (-1 before the first push). It is within `budget` input tokens if `fits`.

    Pass `params` to the provider's SDK: `messages.create(model=…, max_tokens=…, **prompt.params)` for
    Anthropic, `chat.completions.create(model=…, **prompt.params)` or, in the format `openai-responses`,
    `responses.create(model=…, **prompt.params)` for OpenAI, and `models.generate_content(model=…,
    **prompt.params)` for Gemini. You may modify it.
    If the policy's engine is the provider, it contains `context_management`; with Anthropic, use
    `beta.messages.create`. If `summary_request` is set, request a summary with `summary_params`, and pass the
    response to `Session.record_summary`.
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
    reconciled: Reconciliation | None = None  #: the outcome of `Session.sync`
    summary_request: Mapping[str, Any] | None = None
    open_calls: tuple[str, ...] = ()  #: ids of the calls at the end: append their results, or push them first

    @property
    def summary_params(self) -> dict[str, Any]:
        """The parameters for `beta.messages.create` that request the summary. Empty if none is needed."""
        if self.summary_request is None:
            return {}
        kept = {name: value for name, value in self.params.items() if name != "context_management"}
        return {
            **kept,
            "messages": self.params["messages"][: self.summary_request["messages"]],
            "compaction": self.summary_request["compaction"],
            "betas": self.summary_request["betas"],
        }

    @classmethod
    def read(cls, data: bytes) -> Prompt:
        """Parse a response body. Raises `UnexpectedResponse`."""
        try:
            value: Mapping[str, Any] = load_json(data)
            manifest = value.get("manifest")
            return cls(
                params=_params(value),
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
                reconciled=value.get("reconciled"),
                summary_request=value.get("summary_request"),
                open_calls=tuple(value.get("open_calls", ())),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnexpectedResponse(f"the response is not a prompt: {error!r}") from None


def _params(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields to pass to the provider, by the names of its API."""
    fields = {name: value[name] for name in _PROVIDER_FIELDS if value.get(name) not in (None, [])}
    return provider_fields(value["format"], fields)
