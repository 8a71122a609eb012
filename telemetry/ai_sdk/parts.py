"""The parts of the AI SDK's messages (`LanguageModelV2Prompt` to `LanguageModelV4Prompt`)."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from telemetry.json_text import objects

JSON = dict[str, Any]

#: Beginnings of the ids of calls of tools that the provider runs.
PROVIDER_RUN = ("srvtoolu_", "mcptoolu_", "ws_", "fs_", "ci_", "ig_", "mcp_")

_DENIED = "Tool call execution denied."

#: Beginnings of images in Base64. The SDK recognizes those without a media type.
_IMAGES = {"iVBORw": "image/png", "R0lGOD": "image/gif", "UklGR": "image/webp"}


def option(part: Mapping[str, Any], name: str) -> Any:
    """Return an option of the provider, or None. Its key is the provider's name, which varies."""
    for field in ("providerOptions", "providerMetadata"):
        by_provider = part.get(field)
        for options in by_provider.values() if isinstance(by_provider, dict) else ():
            if isinstance(options, dict) and options.get(name) is not None:
                return options[name]
    return None


def words(part: Mapping[str, Any], name: str = "text") -> str:
    """Return a field that is a string, else ""."""
    value = part.get(name)
    return value if isinstance(value, str) else ""


def is_url(part: Mapping[str, Any]) -> bool:
    return words(part, "data").lower().startswith(("http://", "https://"))


def media_type(part: Mapping[str, Any]) -> str:
    found = words(part, "mediaType")
    if found not in ("", "image", "image/*"):
        return found
    data = words(part, "data")
    return next((kind for start, kind in _IMAGES.items() if data.startswith(start)), "image/jpeg")


def url_of(part: Mapping[str, Any]) -> str:
    """Return the URL of a file, which has the data itself if the SDK uploads them."""
    data = words(part, "data")
    return data if is_url(part) else f"data:{media_type(part)};base64,{data}"


def plain_text(data: str) -> str:
    """Return the content of a text file, which is in Base64 unless the application passed it as text."""
    try:
        return b64decode(data, validate=True).decode()
    except ValueError:
        return data


def json_text(value: Any) -> str:
    """Return JSON text as `JSON.stringify` writes it."""
    return orjson.dumps(value).decode()


def arguments(call: Mapping[str, Any]) -> str:
    """Return the arguments of a tool call as JSON text."""
    given = call.get("input")
    return given if isinstance(given, str) else json_text({} if given is None else given)


def output_of(result: Mapping[str, Any]) -> Mapping[str, Any]:
    output = result.get("output")
    return output if isinstance(output, dict) else {}


def output_text(output: Mapping[str, Any]) -> str:
    """Return the output of a tool as text."""
    kind, value = output.get("type"), output.get("value")
    if kind == "execution-denied":
        return words(output, "reason") or _DENIED
    if isinstance(value, str) and kind in ("text", "error-text"):  # perhaps not hashable
        return value
    return json_text(value)


def output_parts(output: Mapping[str, Any]) -> list[JSON] | None:
    """Return the output of a tool as parts like those of a user's message, or None if it is a text."""
    if output.get("type") != "content":
        return None
    return [part for item in objects(output.get("value")) if (part := _output_part(item)) is not None]


def _output_part(item: JSON) -> JSON | None:
    match item.get("type"):
        case "text":
            return item
        case "media" | "image-data" | "file-data":
            return {**item, "type": "file", "filename": item.get("filename") or "data"}
        case "file":  # version 7
            source = item.get("data")
            data = source.get(str(source.get("type"))) if isinstance(source, dict) else source
            return {**item, "data": data, "filename": item.get("filename") or "data"}
        case "image-url":
            return {**item, "type": "file", "mediaType": "image/*", "data": item.get("url")}
        case "file-url":
            return {**item, "type": "file", "mediaType": "application/pdf", "data": item.get("url")}
    return None


def provider_names(tools: Sequence[JSON]) -> dict[str, str]:
    """Return the names that the provider has for its own tools, such as `web_search`, by the SDK's names."""
    return {words(tool, "name"): provider_type(tool).rstrip("_0123456789") for tool in tools if "id" in tool}


def provider_type(tool: Mapping[str, Any]) -> str:
    """Return the type of a provider's tool: `web_search_20250305` of `anthropic.web_search_20250305`."""
    return words(tool, "id").rpartition(".")[2]


def settings(tool: Mapping[str, Any]) -> JSON:
    """Return the settings of a provider's tool."""
    found = snake_case(tool.get("args"))
    return found if isinstance(found, dict) else {}


def snake_case(value: Any) -> Any:
    """Return a value with the names of fields as the provider has them, and without nulls."""
    if isinstance(value, list):
        return [snake_case(each) for each in value]
    if isinstance(value, dict):
        fields = {re.sub(r"[A-Z]", r"_\g<0>", key).lower(): each for key, each in value.items()}
        return {key: snake_case(each) for key, each in fields.items() if each is not None}
    return value
