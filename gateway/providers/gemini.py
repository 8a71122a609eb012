"""Gemini's API. The `contents` of a request are its messages, and its URL names the model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import orjson

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
_MODEL = "model"
_USER = b'"user"'
#: Other roles of contents that are the user's: LiteLLM and older SDKs send them with responses of functions.
_OF_USER = (None, "function")

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
        found = _PATH.fullmatch(path)
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

        Some SDKs keep each part of a streamed response as a content.
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
        sent = [each for each in items(fields.get(_CONTENTS)) if each.get("role") == _MODEL]
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
        message = {"role": _MODEL, "parts": parts}
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
    """Return whether consecutive contents are the model's, or contents have another role than usual.

    Very deep ones are neither merged nor recorded.
    """
    contents = items(fields.get(_CONTENTS))
    roles = [each.get("role") for each in contents]
    is_split = any(a == b == _MODEL for a, b in pairwise(roles))
    return (is_split or any(role in _OF_USER for role in roles)) and not depth_exceeds(contents)


def _merged(contents: list[bytes]) -> list[bytes]:
    """Return the contents with consecutive ones of the model as one, and with the usual roles.

    The others keep their bytes.
    """
    values = [mapping(orjson.loads(each)) for each in contents]
    out: list[bytes] = []
    parts: list[dict[str, Any]] = []
    for index, value in enumerate(values):
        if value.get("role") != _MODEL:
            is_meant = value and value.get("role") in _OF_USER
            out.append(with_field(contents[index], "role", _USER) if is_meant else contents[index])
            continue
        follows = index > 0 and values[index - 1].get("role") == _MODEL
        parts = parts if follows else []
        for part in items(value.get("parts")):
            _add(parts, part)
        if index + 1 == len(values) or values[index + 1].get("role") != _MODEL:
            whole = {**value, "parts": parts or items(value.get("parts"))}
            out.append(orjson.dumps(whole) if follows else contents[index])
    return out
