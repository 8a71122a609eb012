"""Chat sessions of VS Code, such as those with GitHub Copilot: exports, and the sessions that it stores.

"Chat: Export Session" and older versions write one JSON document. Newer versions store a log: the session on
the first line, then its changes. A request contains what the user sees (`response`) and, if Copilot completed
it, the messages of its model calls (`result.metadata`). A line with the contents of `workspace.json` may
follow (see `importers/folders.py`). The content is converted to Anthropic's format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.formats.vscode_parts import (
    Round,
    agents_of,
    changed,
    content_of,
    path_of,
    rounds_of,
    rounds_of_parts,
)
from importers.jsonlines import Record, first_value, list_in, read_records, take_messages, values
from importers.turns import Answer, TurnBuilder, in_one_message
from importers.values import (
    id_of,
    list_of,
    mapping_of,
    milliseconds_of,
    request_of,
    text_of,
    time_of,
    title_of,
    tokens_of,
    usage_of,
)

#: States of a request: the model is answering, or waits for the user's confirmation.
_RUNNING = (0, 4)


class VSCodeChatImporter:
    """Reads chat sessions of VS Code."""

    name = "vscode-chat"
    label = "VS Code chat session: export (JSON) or stored session (JSON or JSONL)"

    def recognizes(self, log: LogFile) -> bool:
        value = first_value(log)
        return _is_session(value) or (_is_change(value) and _is_session(value.get("v")))

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        reading = _Reading(log)
        yield from read_records(log, values(log), reading.take)
        yield from take_messages(log, reading.requests(), reading.take_request)
        yield from reading.sessions()


class _Conversation:
    """The messages of the session, or of one of its sub-agents."""

    def __init__(self) -> None:
        self.turns = TurnBuilder(in_one_message)
        self.title = self.first_words = self.model = ""

    def add(self, content: list[dict[str, Any]], source_id: str, at: datetime | None, **flags: bool) -> None:
        """Add a message of the user, if it is not empty."""
        if content:
            body = {"role": "user", "content": content}
            self.turns.add(ImportedMessage(body=body, source_id=source_id, at=at, **flags))

    def answer(self, found: Round, source_id: str, at: datetime | None) -> Answer:
        """Add an answer with the results of its calls."""
        at = found.at or at
        answer = Answer(
            body={"role": "assistant", "content": found.blocks},
            source_id=source_id,
            at=at,
            model=found.model or self.model,
        )
        self.turns.answer(answer, found.results)
        for call, result in found.results.items():
            if result is not None:
                body = {"role": "user", "content": [result]}
                message = ImportedMessage(body=body, source_id=f"{source_id}-{call}", at=at)
                self.turns.result(call, message)
        return answer


class _Reading:
    """One session. Its requests are read after all changes."""

    def __init__(self, log: LogFile) -> None:
        self._log = log
        self._session: Any = {}
        self._folder = ""
        self._main = _Conversation()
        self._agents: dict[str, _Conversation] = {}
        self._context: Any = None  #: the context of the workspace that was added last

    def take(self, record: Record) -> None:
        """Read the session, a change, or the facts of the workspace."""
        value = record.value
        if _is_change(value):
            session = changed(self._session, value)
            list_in(session, "requests")
            self._session = session
        elif _is_session(value):
            self._session = value
        else:
            self._folder = path_of(value.get("folder") or value["workspace"])

    def requests(self) -> list[Any]:
        return list_of(mapping_of(self._session).get("requests"))

    def take_request(self, number: int, request: Mapping[str, Any]) -> None:
        """Read a request of the user with all its model calls."""
        if _is_running(request):
            return  # when it is complete, the log contains other messages in place of what the user sees
        main, result = self._main, mapping_of(request.get("result"))
        metadata = mapping_of(result.get("metadata"))
        request_id = str(request.get("requestId") or f"request-{number}")
        at, model = time_of(request.get("timestamp")), str(request.get("modelId") or "").rpartition("/")[2]
        main.model = str(metadata.get("resolvedModel") or ("" if model == "auto" else model)) or main.model
        parts = list(map(mapping_of, list_of(request.get("response"))))
        rounds = rounds_of(metadata) or rounds_of_parts(
            part for part in parts if not part.get("subAgentInvocationId")
        )
        self._add_input(request, metadata, request_id, at, rounds)
        answers = []
        for index, found in enumerate(rounds, start=1):
            if found.blocks:
                answers.append(main.answer(found, f"{request_id}-{index}", at))
            main.add(content_of(found.context), f"{request_id}-{index}-context", found.at or at, is_meta=True)
            self._add_summary(found.summary, f"{request_id}-{index}-summary", found.at or at)
        if answers:
            _note_usage(answers, request, result, metadata)
        self._add_agents(parts, request_id, at)

    def sessions(self) -> Iterator[ImportedSession]:
        """Yield the session, then its sub-agents."""
        session = mapping_of(self._session)
        session_id = str(session.get("sessionId") or self._log.stem)
        selected = mapping_of(mapping_of(session.get("inputState")).get("selectedModel"))
        window = tokens_of(mapping_of(selected.get("metadata")), "maxInputTokens") or None
        folder = self._folder or path_of(session.get("workingDirectory"))
        title = str(session.get("customTitle") or session.get("computedTitle") or "")
        for agent, found in {"": self._main, **self._agents}.items():
            yield ImportedSession(
                external_id=f"{session_id}:agent-{agent}" if agent else session_id,
                parent_external_id=session_id if agent else None,
                format="anthropic",
                agent="vscode",
                turns=found.turns.turns(),
                model=found.model,
                title=title_of(found.title if agent else title) or title_of(found.first_words),
                started_at=None if agent else time_of(session.get("creationDate")),
                context_window=None if agent else window,
                metadata={"cwd": folder} if folder else {},
            )

    def _add_input(
        self,
        request: Mapping[str, Any],
        metadata: Mapping[str, Any],
        request_id: str,
        at: datetime | None,
        rounds: list[Round],
    ) -> None:
        """Add the message of the user, as it was sent if the log contains that: with its attachments."""
        message = request["message"]
        text = message if isinstance(message, str) else str(message["text"])
        own = {found.id for found in rounds}
        for summary in _summaries(metadata):
            if summary.get("toolCallRoundId") not in own:  # of the conversation before this request
                self._add_summary(str(summary.get("text") or ""), f"{request_id}-summary", at)
        context = metadata.get("renderedGlobalContext")
        if context and context != self._context:
            self._context = context
            self._main.add(content_of(context), f"{request_id}-context", at, is_meta=True)
        content = content_of(metadata.get("renderedUserMessage")) or content_of(text)
        self._main.add(content, request_id, at)
        self._main.first_words = request_of(self._main.first_words, text or text_of(content))

    def _add_summary(self, text: str, source_id: str, at: datetime | None) -> None:
        """Add Copilot's summary of the conversation so far, which replaces it."""
        if text:
            self._main.turns.compacted(ClientCompaction())
            self._main.add(content_of(text), source_id, at, is_meta=True, is_summary=True)

    def _add_agents(self, parts: list[Mapping[str, Any]], request_id: str, at: datetime | None) -> None:
        """Add the sub-agents of a request: the log contains the task, the tool calls and the answer."""
        for call, agent in agents_of(parts).items():
            found = self._agents.setdefault(call, _Conversation())
            found.title, found.first_words = agent.title, agent.task
            found.model = agent.model or self._main.model
            found.add(content_of(agent.task), f"{request_id}-task", at)
            for index, each in enumerate(agent.rounds, start=1):
                found.answer(each, f"{request_id}-{index}", at)


def _is_session(value: Any) -> bool:
    """Return whether VS Code would read the value as a session."""
    if not isinstance(value, Mapping) or not isinstance(value.get("requests"), list):
        return False
    return isinstance(value.get("responderUsername"), str) or {"sessionId", "creationDate"} <= value.keys()


def _is_change(value: Any) -> bool:
    return isinstance(value, Mapping) and type(value.get("kind")) is int and not {"k", "v"}.isdisjoint(value)


def _is_running(request: Mapping[str, Any]) -> bool:
    return not request.get("result") and mapping_of(request.get("modelState")).get("value") in _RUNNING


def _summaries(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the last summary that was written during a request; it replaces the others."""
    found = list_of(metadata.get("summaries")) or [metadata.get("summary")]
    return [mapping_of(found[-1])] if found[-1] else []


def _note_usage(
    answers: list[Answer], request: Mapping[str, Any], result: Mapping[str, Any], metadata: Mapping[str, Any]
) -> None:
    """Set the usage, which the log contains for the last call of a request, and the latencies."""
    usage = {**request, **mapping_of(request.get("usage")), **metadata}
    last, timings = answers[-1], mapping_of(result.get("timings"))
    prompt, output = tokens_of(usage, "promptTokens"), tokens_of(usage, "outputTokens", "completionTokens")
    last.usage = usage_of(prompt=prompt, cached=0, output=output)
    response_id = metadata.get("modelMessageId") or request.get("responseId")
    last.response_id = id_of(response_id)
    answers[0].first_token_ms = milliseconds_of(timings.get("firstProgress"))
    if len(answers) == 1:
        last.duration_ms = milliseconds_of(timings.get("totalElapsed"))
