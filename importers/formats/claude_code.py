"""Claude Code session logs: one JSON object per line, in `projects/<folder>/<session id>.jsonl`.

A model response is written as one line per content block, all with the same `message.id`; results of parallel
calls appear between them. Lines of sub-agents (`isSidechain`, or a file `agent-<id>.jsonl`) belong to
separate sessions. Messages keep the chronological order of the file. It includes messages that the user
rewound later, because they were sent and billed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.jsonlines import first_objects, objects, read_records
from importers.turns import Answer, TurnBuilder, in_one_message
from importers.values import id_of, mapping_of, request_of, text_of, time_of, title_of, tokens_of
from pricing.usage import usage_salvage

_CONVERSATION = ("user", "assistant")
#: Other lines at the beginning of a log. After a resumption, there can be several before the first message.
_OTHERS = (
    "system",
    "summary",
    "attachment",
    "progress",
    "queue-operation",
    "file-history-snapshot",
    "ai-title",
    "custom-title",
    "agent-name",
    "mode",
    "permission-mode",
    "last-prompt",
)
_OWN_KEYS = ("sessionId", "leafUuid", "messageId")
#: Prefixes of user messages that the client inserted.
_META_OPENINGS = ("<system-reminder>", "<local-command-", "[Request interrupted")
#: The tag around the text of an attachment, which the client omits in system messages.
_TAG = ("<system-reminder>", "</system-reminder>")
#: The model name of messages that the client generated: "No response requested.", API errors.
_SYNTHETIC = "<synthetic>"
#: Lines with a title of the session, in increasing precedence.
_TITLE_KEYS = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
_MAIN = ""


class ClaudeCodeImporter:
    """Reads Claude Code session logs."""

    name = "claude-code"
    label = "Claude Code session log (JSONL)"

    def recognizes(self, log: LogFile) -> bool:
        return any(
            record.get("type") in _CONVERSATION + _OTHERS and any(key in record for key in _OWN_KEYS)
            for record in first_objects(log, 5)
        )

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        file = _File(log)
        yield from file.read()
        yield from file.sessions()


class _File:
    """The state of reading one log file: the main conversation and those of its sub-agents."""

    def __init__(self, log: LogFile) -> None:
        self._log = log
        self._seen: set[str] = set()
        self._conversations: dict[str, _Conversation] = {_MAIN: _Conversation()}
        self._sidechain_of: dict[str, str] = {}
        self._session_ids: dict[str, None] = {}
        self._titles: list[Mapping[str, Any]] = []

    def read(self) -> Iterator[Damage]:
        """Read the whole file, and yield its damaged lines."""
        items = objects(self._log)
        yield from read_records(self._log, items, lambda item: self._take(item.value, f"line-{item.line}"))

    def sessions(self) -> Iterator[ImportedSession]:
        """Yield the main session, then those of its sub-agents."""
        session_id = self._session_id()
        for agent, conversation in self._conversations.items():
            title = self._title() if agent == _MAIN else ""
            yield conversation.session(session_id, agent, title)

    def _take(self, record: dict[str, Any], line_id: str) -> None:
        kind = record.get("type")
        if kind in _TITLE_KEYS:
            self._titles.append(record)
        elif kind in _CONVERSATION or kind == "system" or (kind == "attachment" and record.get("rendered")):
            uuid = record["uuid"] = str(record.get("uuid") or line_id)
            if uuid in self._seen:
                return  # a forked session copies lines with their uuids
            self._seen.add(uuid)
            self._conversation(record, uuid).take(record)
            if session_id := record.get("sessionId"):
                self._session_ids[str(session_id)] = self._session_ids.pop(str(session_id), None)

    def _conversation(self, record: Mapping[str, Any], uuid: str) -> _Conversation:
        """Return the conversation of a line. In older logs, its first ancestor identifies the sub-agent."""
        if not record.get("isSidechain"):
            return self._conversations[_MAIN]
        parent = str(record.get("parentUuid") or "")
        agent = str(record.get("agentId") or self._sidechain_of.get(parent) or uuid)
        self._sidechain_of[uuid] = agent
        return self._conversations.setdefault(agent, _Conversation())

    def _session_id(self) -> str:
        """Return the file's name if it is a session id, else the last id: forks begin with copied lines."""
        known = list(self._session_ids)
        return self._log.stem if self._log.stem in known or not known else known[-1]

    def _title(self) -> str:
        """Return the last title of the highest precedence, ignoring summaries of other sessions."""
        best, rank = "", -1
        for record in self._titles:
            kind_rank = list(_TITLE_KEYS).index(record["type"])
            title = title_of(str(record.get(_TITLE_KEYS[record["type"]]) or ""))
            foreign = record["type"] == "summary" and record.get("leafUuid") not in self._seen
            if title and kind_rank >= rank and not foreign:
                best, rank = title, kind_rank
        return best


class _Conversation:
    """One session while its lines are read."""

    def __init__(self) -> None:
        self._turns = TurnBuilder(in_one_message)
        self._answers: dict[str, Answer] = {}
        self._blocks: dict[str, set[int]] = {}  # hashes of the blocks of each response
        self._system: list[Mapping[str, Any]] = []  # the attachments since the last answer
        self._metadata: dict[str, Any] = {}
        self._started_at: datetime | None = None
        self._first_words = ""
        self._model = ""
        self._compacting = False

    def take(self, record: Mapping[str, Any]) -> None:
        """Read one line: a user message, a response, an attachment, or the note about a compaction."""
        if record["type"] == "system":
            self._take_note(record)
            return
        self._note_origin(record)
        if record["type"] == "attachment":
            self._take_attachment(record)
            return
        message = record["message"]
        if record["type"] == "user":
            self._take_user(record, message)
        elif message.get("model") != _SYNTHETIC:
            self._take_response(record, message)
        elif not record.get("isApiErrorMessage"):  # API errors are shown to the user, but not sent
            self._turns.add(_message(record, message, is_meta=True))

    def session(self, session_id: str, agent: str, title: str) -> ImportedSession:
        """Return the session; `agent` is empty for the main one."""
        self._add_system()
        return ImportedSession(
            external_id=f"{session_id}:agent-{agent}" if agent else session_id,
            parent_external_id=session_id if agent else None,
            format="anthropic",
            agent="claude-code",
            turns=self._turns.turns(),
            model=self._model,
            title=title or title_of(self._first_words),
            started_at=self._started_at,
            metadata=self._metadata,
        )

    def _note_origin(self, record: Mapping[str, Any]) -> None:
        self._started_at = self._started_at or time_of(record.get("timestamp"))
        for key, name in (("cwd", "cwd"), ("gitBranch", "git_branch"), ("version", "client_version")):
            if record.get(key):
                self._metadata.setdefault(name, record[key])

    def _take_note(self, record: Mapping[str, Any]) -> None:
        if record.get("subtype") == "microcompact_boundary":
            self._metadata["microcompactions"] = self._metadata.get("microcompactions", 0) + 1
        elif record.get("subtype") == "compact_boundary":
            facts = mapping_of(record.get("compactMetadata"))
            before = tokens_of(facts, "preTokens") or None
            self._add_system()
            self._turns.compacted(
                ClientCompaction(trigger=str(facts.get("trigger") or ""), tokens_before=before)
            )
            self._compacting = True

    def _take_user(self, record: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        content = message["content"]
        calls = [block["tool_use_id"] for block in _blocks(content) if block.get("type") == "tool_result"]
        if not content:
            return
        if calls:
            self._turns.result(calls[0], _message(record, message))
        elif record.get("isCompactSummary"):
            self._take_summary(record, message)
        else:
            words = text_of(content)
            is_meta = bool(record.get("isMeta")) or words.lstrip().startswith(_META_OPENINGS)
            self._turns.add(_message(record, message, is_meta=is_meta))
            if not is_meta and not words.startswith("<command-"):
                self._first_words = request_of(self._first_words, words)

    def _take_attachment(self, record: Mapping[str, Any]) -> None:
        """Read what the client adds to the conversation, such as its skills, the date or notifications."""
        if record.get("renderedRole") == "system":
            self._system.append(record)
            return
        blocks = [block for each in record["rendered"] for block in _blocks(each["content"])]
        self._turns.add(_message({**record, "type": "user"}, {"content": blocks}, is_meta=True))

    def _add_system(self) -> None:
        """Add the system message that the client sends last before an answer (provider rule A9)."""
        if self._system:
            text = "\n\n".join(map(_system_text, self._system))
            record = {**self._system[0], "type": "system"}
            self._turns.add(_message(record, {"content": text}, is_meta=True))
            self._system.clear()

    def _take_summary(self, record: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        if not self._compacting:  # older clients wrote the summary without a boundary
            self._turns.compacted(ClientCompaction())
        self._compacting = False
        self._turns.add(_message(record, message, is_summary=True))

    def _take_response(self, record: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        blocks = _blocks(message["content"])
        response_id = str(message.get("id") or record["uuid"])
        answer = self._answers.get(response_id)
        if answer is None and blocks:
            answer = _answer(record, message, response_id)
            self._answers[response_id] = answer
            self._add_system()
            self._turns.answer(answer)
        if answer is None:
            return
        known = self._blocks.setdefault(response_id, set())
        for block in blocks:  # forks and retries repeat lines
            if (identity := hash(repr(block))) not in known:
                known.add(identity)
                answer.body["content"].append(block)
        self._turns.called(answer, [block["id"] for block in blocks if block.get("type") == "tool_use"])
        _note_usage(answer, mapping_of(message.get("usage")))
        self._model = answer.model or self._model


def _answer(record: Mapping[str, Any], message: Mapping[str, Any], response_id: str) -> Answer:
    return Answer(
        body={"role": "assistant", "content": []},
        source_id=response_id,
        response_id=response_id,
        request_id=id_of(record.get("requestId")),
        at=time_of(record.get("timestamp")),
        model=str(message.get("model") or ""),
    )


def _note_usage(answer: Answer, usage: Mapping[str, Any]) -> None:
    """Record the usage of the line with the most output, which is the final one."""
    found, one_hour_tokens = usage_salvage(usage)
    if usage and not (answer.usage and answer.usage.output_tokens > found.output_tokens):
        answer.usage, answer.cache_write_1h_tokens = found, one_hour_tokens


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise TypeError("content is neither a string nor a list of blocks")
    return content


def _system_text(record: Mapping[str, Any]) -> str:
    """Return the text of an attachment as the client sends it in a system message: without the tag."""
    texts = [text_of(_blocks(each["content"])).strip() for each in record["rendered"]]
    return "\n\n".join(text.removeprefix(_TAG[0]).removesuffix(_TAG[1]).strip() for text in texts)


def _message(
    record: Mapping[str, Any], message: Mapping[str, Any], *, is_meta: bool = False, is_summary: bool = False
) -> ImportedMessage:
    return ImportedMessage(
        body={"role": record["type"], "content": message["content"]},
        source_id=record["uuid"],
        at=time_of(record.get("timestamp")),
        is_meta=is_meta,
        is_summary=is_summary,
    )
