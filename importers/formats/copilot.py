"""GitHub Copilot CLI session logs: `events.jsonl` in a session's folder, or one `.jsonl` file per session.

Each line is an event, `{type, data, id, timestamp, parentId}`. Events of sub-agents also contain `agentId`,
in older versions the id of the tool call that started them. The content is independent of the provider. It is
converted to Anthropic's format, which can represent all of it.

Newer versions log the usage of each call, its system prompt and its images. Older ones log only the tokens of
the whole session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.formats.copilot_events import answer_blocks, inserted, is_event, skill_text
from importers.jsonlines import first_objects, objects, read_records
from importers.turns import Answer, TurnBuilder, in_one_message
from importers.values import (
    id_of,
    list_of,
    mapping_of,
    milliseconds_of,
    request_of,
    time_of,
    title_of,
    tokens_of,
    usage_with_cache,
)

#: The origin of a session: keys of the context of its start, and of the metadata.
_CONTEXT = {"cwd": "cwd", "branch": "git_branch", "repository": "repository"}

_TRIGGERS = {"threshold": "auto", "manual": "manual"}

#: What a session used: keys of the closing event, and of the metadata.
_TOKENS = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheReadTokens": "cache_read_input_tokens",
    "cacheWriteTokens": "cache_write_input_tokens",
}


class CopilotImporter:
    """Reads session logs of GitHub Copilot CLI."""

    name = "copilot"
    label = "GitHub Copilot CLI session log (events.jsonl)"

    def recognizes(self, log: LogFile) -> bool:
        return any(is_event(value) for value in first_objects(log, 5))

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        reading = _Reading()
        yield from read_records(log, objects(log), lambda record: reading.take(record.value))
        yield from reading.sessions(log)


class _Conversation:
    """The messages of the session, or of one of its sub-agents."""

    def __init__(self) -> None:
        self.turns = TurnBuilder(in_one_message)
        self.facts: Mapping[str, Any] = {}  #: the start of the sub-agent
        self.system: str | None = None
        self.model = self.first_words = ""
        self.window: int | None = None
        self.answers: list[Answer] = []
        self.results: set[str] = set()
        self.is_empty = True

    def add(self, message: ImportedMessage) -> None:
        self.is_empty = False
        self.turns.add(message)


class _Reading:
    """The events of one session."""

    def __init__(self) -> None:
        self._conversations = {"": _Conversation()}
        self._start: Mapping[str, Any] = {}
        self._started_at: Any = None
        self._model = self._title = ""
        self._usages: dict[str, Mapping[str, Any]] = {}
        self._totals: Mapping[str, Any] = {}
        self._assets: dict[str, Mapping[str, Any]] = {}
        self._tasks: dict[str, str] = {}  #: the prompts of sub-agents, by tool call

    def take(self, event: Mapping[str, Any]) -> None:
        kind, data = event["type"], event["data"]
        if not isinstance(data, Mapping):
            raise TypeError("data is not an object")
        agent = str(event.get("agentId") or data.get("parentToolCallId") or "")
        match kind:
            case "session.start":
                self._start = self._start or data
                self._started_at = time_of(data.get("startTime"))
                self._model = str(data.get("selectedModel") or "")
            case "session.model_change" if not agent:
                self._model = str(data["newModel"])
            case "session.title_changed":
                self._title = str(data["title"])
            case "session.binary_asset":
                self._assets[str(data["assetId"])] = data
            case "session.usage_record" | "assistant.usage":
                self._take_usage(mapping_of(data.get("usage", data)))
            case "session.shutdown":
                self._totals = mapping_of(data.get("modelMetrics")) or self._totals
            case "subagent.started":
                self._conversation(str(event.get("agentId") or data["toolCallId"])).facts = data
            case _:
                self._take_content(kind, event, data, agent)

    def _take_content(self, kind: str, event: Mapping[str, Any], data: Mapping[str, Any], agent: str) -> None:
        """Read an event that adds to the conversation. The others only inform the user."""
        match kind:
            case "system.message" if data.get("role") == "system":
                self._conversation(agent).system = str(data["content"])
            case "user.message":
                self._take_user(self._conversation(agent), event, data)
            case "assistant.message":
                self._take_answer(self._conversation(agent), event, data, agent)
            case "tool.execution_complete" if not data.get("isUserRequested"):
                self._take_result(self._conversation(agent), event, data)
            case "system.notification":
                self._conversation(agent).add(inserted(event, str(data["content"])))
            case "skill.invoked":
                self._conversation(agent).add(inserted(event, skill_text(data)))
            case "session.compaction_complete" if data.get("success") and data.get("summaryContent"):
                self._take_compaction(self._conversation(agent), event, data)

    def sessions(self, log: LogFile) -> Iterator[ImportedSession]:
        """Yield the session, then its sub-agents."""
        folder = log.path.parent.name if log.stem == "events" else ""
        session_id = str(self._start.get("sessionId") or folder or log.stem)
        context = mapping_of(self._start.get("context"))
        origin = {name: context.get(key) for key, name in _CONTEXT.items()}
        origin["client_version"] = self._start.get("copilotVersion")
        metadata = {name: value for name, value in origin.items() if isinstance(value, str) and value}
        for agent, found in self._conversations.items():
            parent = str(found.facts.get("parentId") or "")
            parent = parent if parent in self._conversations and parent != agent else ""
            has_usage = self._note_usage(found)
            title = found.facts.get("agentDescription") if agent else self._title
            yield ImportedSession(
                external_id=_name(session_id, agent),
                parent_external_id=_name(session_id, parent) if agent else None,
                format="anthropic",
                agent="copilot",
                turns=found.turns.turns(),
                model=found.model or ("" if agent else self._model),
                title=title_of(str(title or "")) or title_of(found.first_words),
                started_at=None if agent else self._started_at,
                context_window=found.window,
                system=found.system,
                metadata=metadata if agent or has_usage else {**metadata, **self._total_tokens()},
            )

    def _conversation(self, agent: str) -> _Conversation:
        return self._conversations.setdefault(agent, _Conversation())

    def _take_usage(self, usage: Mapping[str, Any]) -> None:
        if usage.get("apiCallId"):
            self._usages[str(usage["apiCallId"])] = usage

    def _take_user(
        self, conversation: _Conversation, event: Mapping[str, Any], data: Mapping[str, Any]
    ) -> None:
        """Read a message with its images. The logged text is the one that is sent, with what is added."""
        content = [{"type": "text", "text": str(data.get("transformedContent") or data["content"])}]
        for attachment in list_of(data.get("attachments")):
            if image := self._image(mapping_of(attachment)):
                path = attachment.get("path")
                content += [{"type": "text", "text": f"Image file at path {path}"}] if path else []
                content.append(image)
        source = str(data.get("source") or "user")
        is_meta = bool(data.get("isAutopilotContinuation")) or (source != "user" and not event.get("agentId"))
        body = {"role": "user", "content": content}
        conversation.add(
            ImportedMessage(
                body=body, source_id=str(event["id"]), at=time_of(event.get("timestamp")), is_meta=is_meta
            )
        )
        if not is_meta:
            conversation.first_words = request_of(conversation.first_words, str(data["content"]))

    def _take_answer(
        self, conversation: _Conversation, event: Mapping[str, Any], data: Mapping[str, Any], agent: str
    ) -> None:
        calls = [mapping_of(call) for call in list_of(data.get("toolRequests"))]
        for call in calls:
            self._tasks[str(call["toolCallId"])] = str(mapping_of(call.get("arguments")).get("prompt") or "")
        blocks = answer_blocks(data, calls)
        if not blocks:
            return
        if conversation.is_empty and self._tasks.get(agent):  # older versions do not log a sub-agent's prompt
            conversation.add(inserted({**event, "id": f"{event['id']}-prompt"}, self._tasks[agent]))
        names, response_id = [str(call["toolCallId"]) for call in calls], data.get("apiCallId")
        last = conversation.answers[-1] if conversation.answers else None
        if last and response_id and last.response_id == str(response_id):  # a response in several parts
            last.body["content"].extend(blocks)
            conversation.turns.called(last, names)
            return
        answer = Answer(
            body={"role": "assistant", "content": blocks},
            source_id=str(event["id"]),
            at=time_of(event.get("timestamp")),
            model=str(data.get("model") or conversation.facts.get("model") or self._model),
            response_id=id_of(response_id),
            request_id=id_of(data.get("requestId")),
        )
        conversation.model = answer.model
        conversation.is_empty = False
        conversation.answers.append(answer)
        conversation.turns.answer(answer, names)

    def _take_result(
        self, conversation: _Conversation, event: Mapping[str, Any], data: Mapping[str, Any]
    ) -> None:
        call = str(data["toolCallId"])
        if call in conversation.results:
            return
        conversation.results.add(call)
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call}
        if data.get("success"):
            result = mapping_of(data.get("result"))
            text = str(result.get("content") or "")
            images = [
                image
                for each in list_of(result.get("binaryResultsForLlm"))
                if (image := self._image(mapping_of(each)))
            ]
            block["content"] = [{"type": "text", "text": text}, *images] if images else text
        else:
            error = mapping_of(data.get("error")).get("message") or "Tool execution failed"
            block |= {"content": str(error), "is_error": True}
        body = {"role": "user", "content": [block]}
        at = time_of(event.get("timestamp"))
        conversation.turns.result(call, ImportedMessage(body=body, source_id=str(event["id"]), at=at))

    def _take_compaction(
        self, conversation: _Conversation, event: Mapping[str, Any], data: Mapping[str, Any]
    ) -> None:
        trigger = _TRIGGERS.get(str(data.get("trigger")), "")
        before = tokens_of(data, "preCompactionTokens") or None
        conversation.turns.compacted(ClientCompaction(trigger=trigger, tokens_before=before))
        body = {"role": "user", "content": [{"type": "text", "text": str(data["summaryContent"])}]}
        at = time_of(event.get("timestamp"))
        conversation.add(
            ImportedMessage(body=body, source_id=str(event["id"]), at=at, is_meta=True, is_summary=True)
        )

    def _image(self, value: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return an image, whose data may be in an earlier event."""
        asset = self._assets.get(str(value.get("assetId")), value)
        mime, data = str(asset.get("mimeType") or ""), asset.get("data")
        if not mime.startswith("image/") or not isinstance(data, str):
            return None
        return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}

    def _note_usage(self, conversation: _Conversation) -> bool:
        """Set the usage of the answers. Returns whether the log contains any."""
        for answer in conversation.answers:
            usage = self._usages.get(answer.response_id or "", {})
            answer.usage = usage_with_cache(usage)
            answer.first_token_ms, answer.duration_ms = (
                milliseconds_of(usage.get(key)) for key in ("timeToFirstTokenMs", "duration")
            )
            conversation.window = tokens_of(usage, "maxPromptTokens") or conversation.window
        return any(answer.usage for answer in conversation.answers)

    def _total_tokens(self) -> dict[str, int]:
        """Return the tokens of the whole session."""
        usages = [mapping_of(mapping_of(each).get("usage")) for each in self._totals.values()]
        totals = {name: sum(tokens_of(usage, key) for usage in usages) for key, name in _TOKENS.items()}
        return {name: total for name, total in totals.items() if total}


def _name(session_id: str, agent: str) -> str:
    return f"{session_id}:agent-{agent}" if agent else session_id
