"""JSON-RPC messages of the Model Context Protocol, in both of its forms.

- **Current** (2026-07-28): each request is complete. It repeats the protocol version and the method in
  headers, and carries the version and the client's capabilities in `params._meta`.
- **Handshake** (2025-11-25 and earlier): `initialize` negotiates the version. The server keeps no session.

Specification: https://modelcontextprotocol.io/specification/
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

CURRENT_VERSION = "2026-07-28"
HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
VERSIONS = (CURRENT_VERSION, *HANDSHAKE_VERSIONS)

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022

_META_VERSION = "io.modelcontextprotocol/protocolVersion"
_META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_META_SERVER = "io.modelcontextprotocol/serverInfo"

#: Milliseconds for which a client may cache the list of tools, which changes only with a new version.
_CACHE_MS = 300_000

_CAPABILITIES: dict[str, Any] = {"tools": {}}


class RpcError(Exception):
    """A JSON-RPC error, with the HTTP status that the specification requires."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    @property
    def status(self) -> int:
        return 404 if self.code == METHOD_NOT_FOUND else 400

    def to_json(self) -> dict[str, Any]:
        error = {"code": self.code, "message": str(self)}
        return error if self.data is None else {**error, "data": self.data}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A request, or a notification if `id` is None. `is_current` is False for the handshake form."""

    id: str | int | None
    method: str
    params: Mapping[str, Any]
    is_current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The application behind the protocol.

    `call` runs a tool with its arguments and returns the `tools/call` result. It raises `RpcError` if there
    is no such tool.
    """

    version: str
    instructions: str
    tools: list[dict[str, Any]]
    call: Callable[[str, Mapping[str, Any]], dict[str, Any]]

    @property
    def info(self) -> dict[str, str]:
        return {"name": "contextapp", "version": self.version}


def read_message(body: Any, headers: Mapping[str, str]) -> Message:
    """Validate a decoded body. Raises `RpcError`."""
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, "Send one JSON-RPC 2.0 message per request")
    method, params, id = body.get("method"), body.get("params") or {}, body.get("id")
    if not isinstance(method, str) or not isinstance(params, dict):
        raise RpcError(INVALID_REQUEST, "`method` must be a string and `params` an object")
    if "id" in body and (isinstance(id, bool) or not isinstance(id, str | int)):
        raise RpcError(INVALID_REQUEST, "`id` must be a string or an integer")
    version = headers.get("MCP-Protocol-Version")
    meta = params.get("_meta")
    is_current = version not in HANDSHAKE_VERSIONS and (
        version is not None or (isinstance(meta, dict) and _META_VERSION in meta)
    )
    message = Message(id=id, method=method, params=params, is_current=is_current)
    if is_current and id is not None:
        _check_envelope(message, headers)
    return message


def _check_envelope(message: Message, headers: Mapping[str, str]) -> None:
    """Check the fields that each request of the current form repeats. Raises `RpcError`."""
    meta = message.params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    missing = [name for name in (_META_VERSION, _META_CAPABILITIES) if name not in meta]
    version = headers.get("MCP-Protocol-Version")
    if missing and version in (None, CURRENT_VERSION):
        raise RpcError(
            INVALID_PARAMS, f"`params._meta` lacks {' and '.join(f'`{name}`' for name in missing)}"
        )
    if not missing and version != meta[_META_VERSION]:
        raise RpcError(HEADER_MISMATCH, "The header MCP-Protocol-Version differs from `params._meta`")
    if version != CURRENT_VERSION:
        raise RpcError(
            UNSUPPORTED_VERSION,
            "Unsupported protocol version",
            {"supported": list(VERSIONS), "requested": version},
        )
    if headers.get("Mcp-Method") != message.method:
        raise RpcError(HEADER_MISMATCH, "The header Mcp-Method differs from `method`")
    name = message.params.get("name")
    if message.method == "tools/call" and name is not None and _header_text(headers.get("Mcp-Name")) != name:
        raise RpcError(HEADER_MISMATCH, "The header Mcp-Name differs from `params.name`")


def _header_text(value: str | None) -> str | None:
    """Decode `=?base64?…?=`, the form of values that are not plain ASCII."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def answer(message: Message, server: Server) -> dict[str, Any]:
    """Return the result of a request. Raises `RpcError`."""
    result = _result(message, server)
    if not message.is_current:
        return result
    return {**result, "resultType": "complete", "_meta": {_META_SERVER: server.info}}


def _result(message: Message, server: Server) -> dict[str, Any]:
    cached = {"ttlMs": _CACHE_MS, "cacheScope": "public"} if message.is_current else {}
    match message.method, message.is_current:
        case "initialize", False:
            return _initialize(message, server)
        case "server/discover", True:
            about = {"capabilities": _CAPABILITIES, "instructions": server.instructions}
            return {"supportedVersions": list(VERSIONS), **about, **cached}
        case "ping", False:
            return {}
        case "tools/list", _:
            return {"tools": server.tools, **cached}
        case "tools/call", _:
            return _call(message, server)
    raise RpcError(METHOD_NOT_FOUND, f"Unknown method: {message.method}")


def _initialize(message: Message, server: Server) -> dict[str, Any]:
    requested = message.params.get("protocolVersion")
    return {
        "protocolVersion": requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[0],
        "capabilities": _CAPABILITIES,
        "serverInfo": server.info,
        "instructions": server.instructions,
    }


def _call(message: Message, server: Server) -> dict[str, Any]:
    name, arguments = message.params.get("name"), message.params.get("arguments")
    arguments = {} if arguments is None else arguments
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "`name` must be a string and `arguments` an object")
    return server.call(name, arguments)
