"""What Gemini's API rejects, checked on the `contents` of a request. Shares no code with the renderer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

_DATA = {
    "text": str,
    "functionCall": dict,
    "functionResponse": dict,
    "inlineData": dict,
    "fileData": dict,
    "executableCode": dict,
    "codeExecutionResult": dict,
    "toolCall": dict,
    "toolResponse": dict,
}
_FIELDS = {*_DATA, "thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"}

#: The role of each part about functions, and its field with an object.
_FUNCTIONS = (("functionCall", "model", "args"), ("functionResponse", "user", "response"))


def faults(contents: list[dict[str, Any]], *, signatures: bool = False) -> Iterator[str]:
    """Yield the faults. The calls of the last content may be open. `signatures`: Gemini 3 requires them."""
    if contents and contents[0]["role"] != "user":
        yield "0: the first content is not the user's"
    steps: list[tuple[str, list[dict[str, Any]]]] = []
    for at, content in enumerate(contents):
        yield from _content_faults(at, content)
        if steps and steps[-1][0] == content["role"]:
            steps[-1][1].extend(content["parts"])
        else:
            steps.append((content["role"], list(content["parts"])))
    yield from _pair_faults(steps)
    if signatures:
        yield from _signature_faults(steps)


def _content_faults(at: int, content: dict[str, Any]) -> Iterator[str]:
    if content.keys() != {"role", "parts"} or content["role"] not in ("user", "model"):
        yield f"{at}: {sorted(content)} {content.get('role')}"
    if not content["parts"]:
        yield f"{at}: no parts"
    for part in content["parts"]:
        kinds = [name for name in _DATA if name in part]
        if not part.keys() <= _FIELDS or len(kinds) > 1 or not (kinds or "thoughtSignature" in part):
            yield f"{at}: fields {sorted(part)}"
            continue
        if kinds and not isinstance(part[kinds[0]], _DATA[kinds[0]]):
            yield f"{at}: {part}"
        if part.get("text") == "" and "thoughtSignature" not in part:
            yield f"{at}: empty text"
        for kind, role, field in _FUNCTIONS:
            value = part.get(kind)
            if value is not None and (
                content["role"] != role or not value["name"] or not isinstance(value.get(field, {}), dict)
            ):
                yield f"{at}: {value}"


def _pair_faults(steps: list[tuple[str, list[dict[str, Any]]]]) -> Iterator[str]:
    """Yield the steps whose calls the next step does not answer: one response per call of each function."""
    waiting: Counter[str] = Counter()
    for number, (role, parts) in enumerate(steps):
        answered = Counter(p["functionResponse"]["name"] for p in parts if "functionResponse" in p)
        if role == "user" and answered != waiting:
            yield f"step {number}: calls {dict(waiting)} answered by {dict(answered)}"
        waiting = Counter(p["functionCall"]["name"] for p in parts if "functionCall" in p)


def _signature_faults(steps: list[tuple[str, list[dict[str, Any]]]]) -> Iterator[str]:
    start = 0
    for number, (role, parts) in enumerate(steps):
        if role == "user" and not any("functionResponse" in part for part in parts):
            start = number
    for number, (_, parts) in enumerate(steps[start:], start):
        first = next((part for part in parts if "functionCall" in part), None)
        if first is not None and not first.get("thoughtSignature"):
            yield f"step {number}: function call is missing a thought_signature in functionCall parts"
