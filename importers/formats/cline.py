"""Tasks of Cline and Roo Code, whose messages are in Anthropic's format with private fields.

The extensions store a task as a folder: `api_conversation_history.json` with the messages, and
`ui_messages.json`, whose `api_req_started` entries contain usage and cost. Newer versions of Cline store
`<id>.messages.json`, whose messages contain both, and `<id>.json` with facts of the session.
`importers/reading.py` joins the two files of a task to one log. The first file alone is also a log, but lacks
what the other contains.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from compaction.messages import Usage
from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.calls import conversation_id
from importers.jsonlines import Record, first_value, list_in, read_records, take_messages, values
from importers.turns import Answer, TurnBuilder, in_one_message
from importers.values import (
    id_of,
    json_text,
    mapping_of,
    microusd_of,
    request_of,
    text_of,
    time_of,
    title_of,
    tokens_of,
    usage_of,
    usage_with_cache,
)

#: File name of the extensions' messages, without its suffix. It is the same for all tasks.
HISTORY = "api_conversation_history"

#: The beginning of the user's text, which is enclosed in a tag. The rest of a message is from the client.
_TYPED = re.compile(r"<(task|feedback|user_message|answer)>")

#: The tag in the files of newer versions of Cline, which do not send it.
_WRAPPED = re.compile(r"\A<user_input\b[^>]*>(.*)</user_input>\Z", re.DOTALL)

#: Fields of blocks that providers accept.
_FIELDS = {
    "text": ("text",),
    "image": ("source",),
    "document": ("source", "title"),
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id", "content", "is_error"),
}


class ClineImporter:
    """Reads tasks of Cline and Roo Code."""

    name = "cline"
    label = "Cline or Roo Code task (folder, or api_conversation_history.json)"

    def recognizes(self, log: LogFile) -> bool:
        value = first_value(log)
        if isinstance(value, dict):
            return "origin" in value and "sessionId" in value and isinstance(value.get("messages"), list)
        if not _is_messages(value):
            return False
        content = value[0]["content"]
        is_timed = isinstance(content, list) and isinstance(value[0].get("ts"), int)
        return log.stem == HISTORY or is_timed or text_of(content).startswith("<task>")

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        task = _Task()
        yield from read_records(log, values(log), task.take)
        yield from take_messages(log, task.messages, task.add)
        yield task.session(log)


class _Task:
    """The messages of one task, and what the other file contains."""

    def __init__(self) -> None:
        self._document: Mapping[str, Any] = {}
        self._facts: Mapping[str, Any] = {}
        self.messages: list[Mapping[str, Any]] = []
        self._requests: list[Mapping[str, Any]] = []
        self._turns = TurnBuilder(in_one_message)
        self._answers: list[Answer] = []
        self._first_words = self._model = ""

    def take(self, record: Record) -> None:
        """Read one of the two files."""
        value = record.value
        if isinstance(value, list) and not _is_messages(value):
            self._requests = [request for entry in value if (request := _request(entry))]
        elif isinstance(value, list):
            self.messages = value
        elif not isinstance(value, dict):
            raise TypeError("not an object")
        elif "messages" in value:
            self.messages = list_in(value, "messages")
            self._document = value
        else:
            self._facts = value

    def add(self, number: int, message: Mapping[str, Any]) -> None:
        """Add a message, unless it was only displayed."""
        if mapping_of(message.get("metadata")).get("displayOnly"):
            return
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks = [block for each in blocks or () if (block := _block(each))]
        if self._document:
            blocks = [_unwrapped(block) for block in blocks]
        if message.get("isSummary") or message.get("isTruncationMarker"):
            self._turns.compacted(ClientCompaction())
        if not blocks:
            return
        source_id, at = str(message.get("id") or f"message-{number}"), time_of(message.get("ts"))
        is_summary = bool(message.get("isSummary"))
        if message["role"] == "assistant":
            self._add_answer(message, Answer(body=_body(message, blocks), source_id=source_id, at=at))
            self._answers[-1].is_summary = is_summary
            return
        calls = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        words = text_of(blocks)
        typed = words if self._document else _typed(words)
        is_meta = not (typed or calls or is_summary) and bool(self._answers)
        added = ImportedMessage(
            body=_body(message, blocks), source_id=source_id, at=at, is_meta=is_meta, is_summary=is_summary
        )
        if calls:
            self._turns.result(calls[0], added)
        else:
            self._turns.add(added)
        self._first_words = request_of(self._first_words, typed or ("" if is_meta else words))

    def _add_answer(self, message: Mapping[str, Any], answer: Answer) -> None:
        info, metrics = mapping_of(message.get("modelInfo")), mapping_of(message.get("metrics"))
        answer.model = str(info.get("id") or info.get("modelId") or "")
        answer.usage = usage_with_cache(metrics) or _counted(mapping_of(metrics.get("tokens")))
        answer.cost_microusd = microusd_of(metrics.get("cost")) or None
        self._model = answer.model or self._model
        calls = [block["id"] for block in answer.body["content"] if block["type"] == "tool_use"]
        self._turns.answer(answer, calls)
        self._answers.append(answer)

    def session(self, log: LogFile) -> ImportedSession:
        self._note_requests()
        facts, document = self._facts, self._document
        origin = mapping_of(document.get("origin"))
        details = mapping_of(facts.get("metadata"))
        branch = mapping_of(details.get("git")).get("branch")
        found = {
            "cwd": facts.get("cwd"),
            "git_branch": branch,
            "client_version": origin.get("version"),
        }
        return ImportedSession(
            external_id=str(document.get("sessionId") or "") or self._log_name(log),
            parent_external_id=id_of(origin.get("parentThreadId")),
            format="anthropic",
            agent="cline",
            turns=self._turns.turns(),
            model=self._model or str(facts.get("model") or ""),
            title=title_of(str(details.get("title") or "")) or title_of(self._first_words),
            started_at=time_of(facts.get("started_at")),
            system=document.get("system_prompt") or None,
            metadata={key: value for key, value in found.items() if isinstance(value, str) and value},
        )

    def _log_name(self, log: LogFile) -> str:
        """Return the name of the task's folder, which is the task's id."""
        if log.stem != HISTORY:
            return log.stem
        return log.path.parent.name or f"cline-{conversation_id(self.messages)}"

    def _note_requests(self) -> None:
        """Take usage and cost of the answers from the requests in the other file.

        A failed request has no answer: then the time shows which request an answer belongs to.
        """
        if any(answer.usage for answer in self._answers):
            return
        is_apart = any(_cached(request) > tokens_of(request, "tokensIn") for request in self._requests)
        for answer, request in zip(self._answers, self._request_of_answers(), strict=True):
            if request:
                answer.usage = _requested(request, is_apart=is_apart)
                answer.cost_microusd = microusd_of(request.get("cost")) or None

    def _request_of_answers(self) -> list[Mapping[str, Any]]:
        """Return the request of each answer: the last before it, if their numbers differ."""
        if len(self._requests) == len(self._answers):
            return self._requests
        found, times = [], [request["ts"] for request in self._requests]
        previous = 0
        for answer in self._answers:
            end = bisect_right(times, answer.at.timestamp() * 1000) if answer.at else previous
            found.append(self._requests[end - 1] if end > previous else {})
            previous = max(end, previous)
        return found


def _is_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], dict)
        and value[0].get("role") in ("user", "assistant")
        and isinstance(value[0].get("content"), str | list)
    )


def _request(entry: Any) -> Mapping[str, Any]:
    """Return the request that an entry of `ui_messages.json` describes, or an empty object if it failed."""
    if mapping_of(entry).get("say") != "api_req_started" or not isinstance(entry.get("ts"), int):
        return {}
    try:
        request = orjson.loads(entry.get("text") or "")
    except ValueError:
        return {}
    has_usage = isinstance(request, dict) and tokens_of(request, "tokensOut")
    return {**request, "ts": entry["ts"]} if has_usage else {}


def _body(message: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"role": message["role"], "content": list(blocks)}


def _block(block: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a block without private fields, or None if it is not sent."""
    kind = block["type"]
    if kind not in _FIELDS or (kind == "text" and not block.get("text")):
        return None
    found = {name: block[name] for name in _FIELDS[kind] if block.get(name) not in (None, "")}
    if kind == "tool_result":
        found["content"] = _result(block.get("content"))
    return {"type": kind, **found}


def _typed(words: str) -> str:
    """Return the user's part of a message. Searches for the end of each tag only once if it is missing."""
    found, unclosed, start = [], set(), 0
    while opening := _TYPED.search(words, start):
        start, tag = opening.end(), f"</{opening[1]}>"
        end = words.find(tag, start) if tag not in unclosed else -1
        if end < 0:
            unclosed.add(tag)
        else:
            found.append(words[start:end])
            start = end + len(tag)
    return "\n".join(found)


def _unwrapped(block: dict[str, Any]) -> dict[str, Any]:
    wrapped = _WRAPPED.match(block["text"]) if block["type"] == "text" else None
    return {**block, "text": wrapped[1]} if wrapped else block


def _result(content: Any) -> Any:
    """Return a result as text or blocks. Newer versions of Cline store the JSON that they send as text."""
    if isinstance(content, list) and all(mapping_of(part).get("type") in _FIELDS for part in content):
        return [block for part in content if (block := _block(part))]
    return json_text(content)


def _cached(request: Mapping[str, Any]) -> int:
    return tokens_of(request, "cacheReads") + tokens_of(request, "cacheWrites")


def _requested(request: Mapping[str, Any], *, is_apart: bool) -> Usage:
    """Return a request's usage. `tokensIn` contains the cached tokens, unless they are counted apart."""
    uncached = tokens_of(request, "tokensIn")
    return Usage(
        uncached_tokens=uncached if is_apart else uncached - _cached(request),
        cache_read_tokens=tokens_of(request, "cacheReads"),
        cache_write_tokens=tokens_of(request, "cacheWrites"),
        output_tokens=tokens_of(request, "tokensOut"),
    )


def _counted(tokens: Mapping[str, Any]) -> Usage | None:
    """Return the usage that the last versions of the extension store: the prompt with its cached part."""
    prompt, cached = tokens_of(tokens, "prompt"), tokens_of(tokens, "cached")
    return usage_of(prompt=prompt, cached=cached, output=tokens_of(tokens, "completion"))
