"""Definitions of tools: schemas of arguments, and Gemini's tools, each of which declares many functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compaction.messages import JSON

#: The fields of a tool that lists functions, as the API and as the Python SDK spells it.
FUNCTIONS = ("functionDeclarations", "function_declarations")

#: The schema of a tool without arguments, and that of OpenAI's custom tools, whose input is a text.
NO_ARGUMENTS: JSON = {"type": "object", "properties": {}}
TEXT_INPUT: JSON = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}

#: Fields that tool definitions of other providers have. Gemini's tools have none of them.
_OF_OTHERS = frozenset({"type", "name", "function", "custom", "input_schema"})


def is_gemini_tool(tool: JSON) -> bool:
    """Return whether a definition is an element of `tools` in Gemini's API, which ignores null fields."""
    if not isinstance(tool, Mapping) or not _OF_OTHERS.isdisjoint(tool):
        return False
    given = [value for value in tool.values() if value is not None]
    return bool(given) and all(isinstance(value, Mapping | list) for value in given)


def functions_of(tool: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the functions that a Gemini tool declares, or None if it is a tool of the provider."""
    for field in FUNCTIONS:
        if isinstance(declared := tool.get(field), list):
            return [each for each in declared if isinstance(each, Mapping)]
    return None


def separated(tools: JSON) -> Iterator[Mapping[str, Any]]:
    """Yield the definitions in a list of tools of any dialect, each of one tool.

    The functions of Gemini have the form of Anthropic's tools, which every dialect can render. The tools that
    Google runs have no counterpart.
    """
    for tool in tools if isinstance(tools, list) else []:
        if not isinstance(tool, Mapping):
            continue
        if not is_gemini_tool(tool):
            yield _with_type(tool)
            continue
        for function in functions_of(tool) or ():
            named = {key: function[key] for key in ("name", "description") if function.get(key)}
            yield {**named, "input_schema": schema_of(function)}


def _with_type(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a definition with the `type` that OpenAI requires, if it has none and is not Anthropic's.

    Functions that are declared as in the deprecated field `functions` get the form of Anthropic's tools.
    """
    if tool.get("type") is not None or "input_schema" in tool:
        return tool
    for kind in ("function", "custom"):
        if isinstance(tool.get(kind), Mapping):
            return {**tool, "type": kind}
    if not isinstance(tool.get("name"), str):
        return tool
    others = {key: value for key, value in tool.items() if key not in ("type", "parameters")}
    return {**others, "input_schema": tool.get("parameters") or NO_ARGUMENTS}


def schema_of(function: Mapping[str, Any]) -> JSON:
    """Return the JSON Schema of a declared function's arguments."""
    for field in ("parametersJsonSchema", "parameters_json_schema"):
        if isinstance(schema := function.get(field), Mapping):
            return schema
    given = function.get("parameters")
    return _json_schema(given) if isinstance(given, Mapping) else NO_ARGUMENTS


def _json_schema(schema: JSON) -> JSON:
    """Return a schema of Gemini, whose types are in upper case, as JSON Schema."""
    if isinstance(schema, list):
        return [_json_schema(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        name: value.lower() if name == "type" and isinstance(value, str) else _json_schema(value)
        for name, value in schema.items()
    }
