"""Gemini's API. The `contents` of a request are its messages, and its URL names the model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any
from urllib.parse import unquote

import orjson

from compaction.dialects.gemini.kinds import FUNCTION, MODEL, RESPONSE, USER, spelled
from compaction.jsontext import depth_exceeds
from gateway.providers.base import (
    Answer,
    Endpoint,
    Identity,
    Provider,
    client_name,
    header_session,
    items,
    mapping,
    text,
)
from sessions.store.rawjson import element_spans, list_start, with_field

#: The path of a call that generates content, in any version of the API.
_PATH = re.compile(r"(?:[^?]*/)?(?:models|tunedModels)/([^/:]+):(generateContent|streamGenerateContent)/?")

_CONTENTS = "contents"
#: Other roles of contents that are the user's: LiteLLM and older SDKs send them with responses of functions.
_OF_USER = (None, FUNCTION)

#: Code and status of each kind of error.
_STATUS = {
    "authentication_error": (401, "UNAUTHENTICATED"),
    "invalid_request_error": (400, "INVALID_ARGUMENT"),
    "request_too_large": (413, "INVALID_ARGUMENT"),
    "api_error": (502, "UNAVAILABLE"),
}

#: How Gemini CLI begins its user agent, such as `GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64)`.
_CLI = "GeminiCLI"


class Gemini(Provider):
    name = "gemini"
    label = "Gemini"
    content_mark = b'"parts"'

    def endpoint(self, path: str) -> Endpoint:
        found = _PATH.fullmatch(unquote(path))
        return Endpoint(name="generate", model=found[1][:200]) if found else Endpoint()

    def credential_headers(self, secret: str) -> list[tuple[bytes, bytes]]:
        return [(b"x-goog-api-key", secret.encode())]

    def error(self, kind: str, message: str) -> bytes:
        code, status = _STATUS.get(kind, _STATUS["api_error"])
        return json.dumps({"error": {"code": code, "message": message, "status": status}}).encode()

    def identity(self, headers: Mapping[str, str], body: Mapping[str, Any]) -> Identity:
        client = client_name(headers)
        is_cli = client.startswith(_CLI)
        return Identity(
            session=header_session(headers),
            client="gemini-cli" if is_cli else client,
            # Gemini CLI requests summaries, titles and decisions without tools.
            is_side=is_cli and not body.get("tools"),
        )

    def uses_stored(self, endpoint: str, fields: Mapping[str, Any]) -> bool:
        """Return whether the provider adds a cache that the client has created before."""
        return bool(_field(fields, "cachedContent", "cached_content"))

    def history_field(self, endpoint: str) -> str:
        return _CONTENTS

    def compactable(self, endpoint: str, body: bytes) -> bytes:
        """Return the body with the contents that are recorded: see `_merged`.

        Some SDKs keep each part of a streamed answer as a content, or send a content for each response.
        """
        try:
            fields = mapping(orjson.loads(body))
        except orjson.JSONDecodeError:
            return body
        start = list_start(body, _CONTENTS)
        spans = element_spans(body, start) if start is not None and _is_irregular(fields) else []
        if not spans:
            return body
        merged = _merged([body[begin:end] for begin, end in spans])
        return body[:start] + b",".join(merged) + body[spans[-1][1] :]

    def history(self, endpoint: str, body: bytes, fields: Mapping[str, Any]) -> bytes:
        start = list_start(body, _CONTENTS)
        spans = element_spans(body, start) if start is not None else []
        contents = [body[begin:end] for begin, end in spans]
        if len(contents) != len(items(fields.get(_CONTENTS))):  # for example, if the field occurs twice
            contents = [orjson.dumps(each) for each in items(fields.get(_CONTENTS))]
        if _is_irregular(fields):
            contents = _merged(contents)
        parts = [b'"messages":[%b]' % b",".join(contents)]
        if system := _field(fields, "systemInstruction", "system_instruction"):
            parts.append(b'"system":' + orjson.dumps(system))
        if tools := items(fields.get("tools")):
            parts.append(b'"tools":' + orjson.dumps(tools))
        return b"{%b}" % b",".join(parts)

    def resent(self, endpoint: str, fields: Mapping[str, Any], answer: Answer) -> Answer:
        """Return an answer without its thoughts if the client leaves out those of earlier answers."""
        sent = [each for each in items(fields.get(_CONTENTS)) if each.get("role") == MODEL]
        if not sent or any(part.get("thought") for each in sent for part in items(each.get("parts"))):
            return answer
        messages = [
            {**each, "parts": kept}
            for each in answer.messages
            if (kept := [part for part in items(each.get("parts")) if not part.get("thought")])
        ]
        return replace(answer, messages=messages)

    def read_body(self, endpoint: str, body: Mapping[str, Any]) -> Answer:
        return self.read_events(endpoint, [body])

    def read_events(self, endpoint: str, events: Sequence[Mapping[str, Any]]) -> Answer:
        model, id, usage, finished = "", "", dict[str, Any](), False
        parts: list[dict[str, Any]] = []
        for event in events:
            model, id = text(event.get("modelVersion")) or model, text(event.get("responseId")) or id
            usage |= {k: v for k, v in mapping(event.get("usageMetadata")).items() if v is not None}
            for candidate in items(event.get("candidates")):
                if candidate.get("index"):
                    continue  # another candidate, which is not part of the conversation
                for part in items(mapping(candidate.get("content")).get("parts")):
                    _add(parts, part)
                finished = finished or candidate.get("finishReason") is not None
        message = {"role": MODEL, "parts": parts}
        return Answer(messages=[message] if finished and parts else [], id=id, model=model, usage=usage)


def _field(fields: Mapping[str, Any], *names: str) -> Any:
    """Return the value of a field that the API accepts in two spellings."""
    return next((value for name in names if (value := fields.get(name)) is not None), None)


def _add(parts: list[dict[str, Any]], part: Mapping[str, Any]) -> None:
    """Add a streamed part. Its text continues that of the last one, if neither has anything else."""
    last = parts[-1] if parts else {}
    are_texts = isinstance(part.get("text"), str) and isinstance(last.get("text"), str)
    is_plain = part.keys() <= {"text", "thought"} and last.keys() == part.keys()
    if are_texts and is_plain and last.get("thought") == part.get("thought"):
        parts[-1] = {**last, "text": last["text"] + part["text"]}
    elif part != {"text": ""}:
        parts.append(dict(part))


def _is_irregular(fields: Mapping[str, Any]) -> bool:
    """Return whether several contents belong together, or contents have another role than usual.

    Very deep ones are neither merged nor recorded.
    """
    contents = items(fields.get(_CONTENTS))
    is_split = any(first and first == second for first, second in pairwise(map(_group, contents)))
    is_unusual = any(each.get("role") in _OF_USER for each in contents)
    return (is_split or is_unusual) and not depth_exceeds(contents)


def _group(content: Mapping[str, Any]) -> str:
    """Return what consecutive contents belong to: an answer, the responses to its calls, or "" for none."""
    if content.get("role") == MODEL:
        return MODEL
    parts = items(content.get("parts"))
    return RESPONSE if parts and all(spelled(part, RESPONSE) for part in parts) else ""


def _merged(contents: list[bytes]) -> list[bytes]:
    """Return the contents with the usual roles, and those that belong together as one.

    The others keep their bytes.
    """
    out: list[bytes] = []
    values = [mapping(orjson.loads(each)) for each in contents]
    for group, members in groupby(zip(contents, values, strict=True), key=lambda pair: _group(pair[1])):
        found = list(members)
        if group and len(found) > 1:
            out.append(_joined([value for _, value in found], MODEL if group == MODEL else USER))
        else:
            out += [_with_role(content, value) for content, value in found]
    return out


def _joined(contents: Sequence[Mapping[str, Any]], role: str) -> bytes:
    parts: list[dict[str, Any]] = []
    for content in contents:
        for part in items(content.get("parts")):
            _add(parts, part)
    last = contents[-1]
    return orjson.dumps({**last, "role": role, "parts": parts or items(last.get("parts"))})


def _with_role(content: bytes, value: Mapping[str, Any]) -> bytes:
    is_of_user = value and value.get("role") in _OF_USER
    return with_field(content, "role", orjson.dumps(USER)) if is_of_user else content
