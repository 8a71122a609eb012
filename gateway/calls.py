"""A call that passed through the gateway, ready to be recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson

from accounts.keys import key_split, secret_hash

#: Names and prefixes of request headers that are stored with a recorded call.
_KEPT = frozenset(
    {
        "user-agent",
        "content-encoding",
        "anthropic-beta",
        "x-session-id",
        "x-session-affinity",
        "x-parent-session-id",
        "x-contextapp-budget",
    }
)
_KEPT_BEGINNINGS = (
    "x-claude-code-", "x-codex-", "x-opencode-", "x-grok-", "x-openai-subagent", "session", "thread",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyProof:
    """Proof that a caller had an API key, without the key's secret."""

    prefix: str
    hash: str

    @classmethod
    def of(cls, text: str) -> KeyProof | None:
        """Return the proof of a key's text, or None if it is malformed."""
        parts = key_split(text)
        return cls(prefix=parts[0], hash=secret_hash(parts[1]).hex()) if parts is not None else None

    @property
    def id(self) -> bytes:
        return hashlib.sha256(f"{self.prefix}:{self.hash}".encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call: the request as the agent sent it, and the received part of the response.

    `headers` contains only the request headers that identify the session or describe the body. `is_complete`
    is false if the response was cut, by the provider or because the agent disconnected. Times are in
    milliseconds since the request was read; `at` is in seconds since 1970. `request_id` is the provider's.
    `forwarded_estimate` is the size of the prompt that was forwarded with edits, in estimated tokens, and
    `forwarded_from` the id of its session and the number of the session's last compaction at that time.
    `has_other_prompt` is set if a prompt other than the session's was forwarded in compact mode, and
    `is_repaired` if thinking that the provider rejected, or would have rejected, was removed from the prompt.
    """

    id: str
    at: float
    provider: str
    endpoint: str
    upstream: str
    mode: str
    key: KeyProof
    headers: Mapping[str, str]
    body: bytes
    model: str = ""  #: the model that the URL names, "" if the body does
    status: int = 0
    response_type: str = ""
    response_encoding: str = ""
    response: bytes = b""
    is_complete: bool = False
    first_token_ms: int | None = None
    total_ms: int | None = None
    request_id: str = ""
    forwarded_estimate: int | None = None
    forwarded_from: tuple[str, int] | None = None
    has_other_prompt: bool = False
    is_repaired: bool = False

    @property
    def size(self) -> int:
        """The approximate size of the call in memory, in bytes."""
        return len(self.body) + len(self.response) + 2_000

    def pack(self) -> bytes:
        """Return the call as bytes: a line of JSON, the request body, the response."""
        bodies = replace(self, body=b"", response=b"")
        fields: dict[str, Any] = {**asdict(bodies), "body": len(self.body), "response": len(self.response)}
        return orjson.dumps(fields) + b"\n" + self.body + self.response

    @classmethod
    def unpack(cls, data: bytes) -> Call:
        """Return the call packed by `pack`. Raises `ValueError`, `TypeError` or `KeyError`."""
        line, _, rest = data.partition(b"\n")
        fields = orjson.loads(line)
        length = fields["body"]
        key = KeyProof(**fields.pop("key"))
        return cls(**{**fields, "key": key, "body": rest[:length], "response": rest[length:]})


def kept_headers(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers that identify the session or describe the body; never a credential."""
    named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
    return {
        name: value for name, value in named.items() if name in _KEPT or name.startswith(_KEPT_BEGINNINGS)
    }
