"""Parts of VS Code's chat sessions, converted to Anthropic's format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from importers.formats.traced_messages import parsed
from importers.values import arguments_of, count_of, embedded_file, json_text, list_of, mapping_of, time_of

#: Kinds of changes in a stored session.
_INITIAL, _SET, _PUSH, _DELETE = range(4)

#: Types of nodes and elements in a tool result, and of parts of a message (of the library prompt-tsx).
_NODE, _TEXT_NODE = 1, 2
_IMAGE_ELEMENT = 3
_IMAGE_PART, _TEXT_PART, _DOCUMENT_PART = 0, 1, 4

#: Maximum index in a change; a larger one is damage.
_MAX_INDEX = 1 << 20


@dataclass(slots=True)
class Round:
    """One answer with the results of its tool calls. A result is None if the log does not contain it.

    `context` is the text that a hook added after it, and `summary` that of the conversation up to here.
    """

    id: str = ""
    blocks: list[dict[str, Any]] = field(default_factory=list)
    results: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    at: datetime | None = None
    model: str = ""
    context: str = ""
    summary: str = ""


@dataclass(slots=True)
class Agent:
    """What a session contains of a sub-agent."""

    task: str = ""
    title: str = ""
    model: str = ""
    rounds: list[Round] = field(default_factory=list)


def changed(session: Any, change: Mapping[str, Any]) -> Any:
    """Return the session after a change, which is made in place. Raises one of `MALFORMED`."""
    kind, path = change["kind"], change.get("k")
    if kind == _INITIAL:
        return change["v"]
    if not path or kind not in (_SET, _PUSH, _DELETE):
        raise ValueError("not a change of a session")
    owner, key = session, path[-1]
    for name in path[:-1]:
        owner = owner[name]
    if kind == _DELETE:
        owner.pop(key, None)
    elif kind == _SET:
        owner[key] = change.get("v")
    else:
        found = (owner[key] if isinstance(owner, list) else owner.get(key)) or []
        if change.get("i") is not None:
            del found[_index(change["i"]) :]
        found.extend(list_of(change.get("v")))
        owner[key] = found
    return session


def _index(value: Any) -> int:
    index = count_of(value, _MAX_INDEX)
    if index is None:
        raise ValueError("not an index")
    return index


def rounds_of(metadata: Mapping[str, Any]) -> list[Round]:
    """Return the answers of a request from the messages that Copilot logged."""
    results = mapping_of(metadata.get("toolCallResults"))
    summaries = list_of(metadata.get("summaries")) or [metadata.get("summary")]
    summary = mapping_of(summaries[-1])
    rounds = []
    for value in list_of(metadata.get("toolCallRounds")):
        found = Round(
            id=str(value.get("id") or ""),
            blocks=_thinking(mapping_of(value.get("thinking")).get("text")),
            at=time_of(value.get("timestamp")),
            model=str(value.get("modelId") or ""),
            context=str(value.get("hookContext") or ""),
        )
        found.blocks += content_of(str(value.get("response") or ""))
        for call in list_of(value.get("toolCalls")):
            id = str(call["id"])
            found.blocks.append(_tool_use(id, call["name"], call.get("arguments")))
            found.results[id] = _result(id, results[id]) if id in results else None
        if found.id and summary.get("toolCallRoundId") == found.id:
            found.summary = str(summary.get("text") or "")
        rounds.append(found)
    return rounds


def rounds_of_parts(parts: Iterable[Mapping[str, Any]]) -> list[Round]:
    """Return the answers of a request from what the user saw: text, thinking and tool calls, in order."""
    rounds = [Round()]
    for part in parts:
        if part.get("kind") == "toolInvocationSerialized":
            _add_invocation(rounds[-1], part)
            continue
        blocks = _thinking(part.get("value")) if part.get("kind") == "thinking" else content_of(_shown(part))
        if not blocks:
            continue
        if rounds[-1].results:
            rounds.append(Round())
        last = rounds[-1].blocks
        if last and last[-1]["type"] == blocks[0]["type"] == "text":
            last[-1]["text"] += blocks[0]["text"]
        else:
            last += blocks
    return [found for found in rounds if found.blocks]


def agents_of(parts: Iterable[Mapping[str, Any]]) -> dict[str, Agent]:
    """Return the sub-agents of a request by the tool calls that started them."""
    agents: dict[str, Agent] = {}
    own: dict[str, list[Mapping[str, Any]]] = {}
    for part in parts:
        facts = mapping_of(part.get("toolSpecificData"))
        if part.get("subAgentInvocationId"):
            own.setdefault(str(part["subAgentInvocationId"]), []).append(part)
        elif facts.get("kind") == "subagent" and part.get("toolCallId"):
            agents[str(part["toolCallId"])] = Agent(
                task=str(facts.get("prompt") or ""),
                title=str(facts.get("description") or facts.get("agentName") or ""),
                model=str(facts.get("modelName") or ""),
                rounds=[Round(blocks=content_of(str(facts.get("result") or "")))],
            )
    for call, agent in agents.items():
        answer = agent.rounds if agent.rounds[0].blocks else []
        agent.rounds = [*rounds_of_parts(own.get(call, ())), *answer]
    return agents


def content_of(value: Any) -> list[dict[str, Any]]:
    """Return text, or the parts of a message, as content blocks."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}] if value else []
    return [block for part in list_of(value) if (block := _part(mapping_of(part)))]


def path_of(uri: Any) -> str:
    """Return the path of a file or folder, "" if it has none."""
    if isinstance(uri, Mapping):
        return str(uri.get("fsPath") or uri.get("path") or "")
    path = unquote(urlsplit(uri).path) if isinstance(uri, str) else ""
    return path[1:] if path[2:3] == ":" else path


def _part(part: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = part.get("type")
    if kind == _TEXT_PART and part.get("text"):
        return {"type": "text", "text": str(part["text"])}
    if kind == _IMAGE_PART and "imageUrl" in part:
        image = mapping_of(part["imageUrl"])
        return _image(str(image.get("url") or ""), str(image.get("mediaType") or "image/png"))
    if kind == _DOCUMENT_PART:
        document = mapping_of(part.get("documentData"))
        return _file("document", document.get("mediaType"), document.get("data"))
    return None


def _image(source: str, mime: str) -> dict[str, Any] | None:
    if source.startswith(("http://", "https://")):
        return {"type": "image", "source": {"type": "url", "url": source}}
    mime, data = embedded_file(source) or (mime, source)
    return _file("image", mime, data)


def _file(kind: str, mime: Any, data: Any) -> dict[str, Any] | None:
    source = {"type": "base64", "media_type": str(mime), "data": data}
    return {"type": kind, "source": source} if isinstance(data, str) and data else None


def _thinking(text: Any) -> list[dict[str, Any]]:
    """Return thinking without its signature, which is only valid for Copilot's service."""
    found = "".join(map(str, text)) if isinstance(text, list) else str(text or "")
    return [{"type": "thinking", "thinking": found}] if found else []


def _tool_use(id: str, name: Any, arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": str(name), "input": arguments_of(parsed(arguments))}


def _result(id: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's result. Its parts are text, trees of text, or data."""
    content: list[dict[str, Any]] = []
    for part in list_of(result.get("content")):
        value = part.get("value")
        if isinstance(value, Mapping) and "node" in value:
            content += _rendered(value["node"])
        elif value is not None:
            content += content_of(json_text(value))
        elif mime := part.get("mimeType"):
            content += content_of(f"[{mime}]")
    only = content[0]["text"] if len(content) == 1 and content[0]["type"] == "text" else content
    block = {"type": "tool_result", "tool_use_id": id, "content": only or ""}
    return {**block, "is_error": True} if result.get("hasError") else block


def _rendered(node: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the content of a tree as the library renders it."""
    content: list[dict[str, Any]] = []
    for found, is_first in _leaves(node, is_sibling=False):
        if found.get("type") != _TEXT_NODE:
            props = mapping_of(found.get("props"))
            image = _image(str(props.get("src") or ""), str(props.get("mimeType") or "image/png"))
            content += [image] if image else []
            continue
        last = content[-1] if content and content[-1]["type"] == "text" else None
        if last is None:
            content.append({"type": "text", "text": str(found["text"])})
            continue
        if (found.get("lineBreakBefore") or is_first) and last["text"] and not last["text"].endswith("\n"):
            last["text"] += "\n"
        last["text"] += str(found["text"])
    return [block for block in content if block.get("text") != ""]


def _leaves(node: Mapping[str, Any], *, is_sibling: bool) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Yield the texts and images of a tree, and whether a text begins an element outside of a line."""
    for index, child in enumerate(list_of(node.get("children"))):
        if child.get("type") == _TEXT_NODE:
            yield child, index == 0 and not is_sibling
            is_sibling = True
        elif child.get("ctor") == _IMAGE_ELEMENT:
            yield child, False
        elif child.get("type") == _NODE:
            yield from _leaves(child, is_sibling=is_sibling)
            is_sibling = False


def _add_invocation(found: Round, part: Mapping[str, Any]) -> None:
    """Add a tool call as the user saw it, with what the log contains of its input and output."""
    id = str(part.get("toolCallId") or f"call-{len(found.results) + 1}")
    details, facts = mapping_of(part.get("resultDetails")), mapping_of(part.get("toolSpecificData"))
    command = mapping_of(facts.get("commandLine"))
    inputs = (
        details.get("input"),
        facts.get("rawInput"),
        command and {"command": command.get("toolEdited") or command.get("original")},
        {"prompt": facts["prompt"]} if facts.get("prompt") else None,
        {"message": _text(part.get("invocationMessage"))},
    )
    found.blocks.append(_tool_use(id, part["toolId"], next(value for value in inputs if value)))
    output = [
        str(each["value"]) for each in map(mapping_of, list_of(details.get("output"))) if each.get("value")
    ]
    texts = (
        "\n".join(output),
        mapping_of(facts.get("terminalCommandOutput")).get("text"),
        facts.get("result"),
        _text(part.get("pastTenseMessage")),
    )
    content = next((text for text in texts if isinstance(text, str) and text), "")
    block = {"type": "tool_result", "tool_use_id": id, "content": content}
    found.results[id] = {**block, "is_error": True} if details.get("isError") else block


def _shown(part: Mapping[str, Any]) -> str:
    """Return the text of a part of an answer, "" if it has none."""
    match part.get("kind"):
        case None | "markdownContent" | "markdownVuln":
            return _text(part.get("content") or part)
        case "inlineReference":
            reference = mapping_of(part.get("inlineReference"))
            name = part.get("name") or reference.get("name")
            path = path_of(
                reference.get("uri") or mapping_of(reference.get("location")).get("uri") or reference
            )
            return f"`{name or path.rpartition('/')[2]}`"
    return ""


def _text(message: Any) -> str:
    """Return a message of the user interface, which may be an object with Markdown."""
    value = message.get("value") if isinstance(message, Mapping) else message
    return value if isinstance(value, str) else ""
