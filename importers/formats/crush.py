"""Crush sessions from its database, one record per line: the session, then its messages.

`importers/databases.py` reads the database. Crush supports many providers and has its own format, which is
converted to Anthropic's. It logs tokens and cost only per session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.formats.traced_messages import parsed
from importers.jsonlines import Record, first_value, objects, read_records
from importers.turns import Answer, TurnBuilder, in_one_message
from importers.values import (
    arguments_of,
    decoded_text,
    microusd_of,
    request_of,
    text_of,
    time_of,
    title_of,
    tokens_of,
)

#: The folder in a project with the database.
_FOLDER = ".crush"

#: The beginning of the files that a user attaches to a message.
_ATTACHED = """
<system_info>The files below have been attached by the user, consider them in your response</system_info>
"""


class CrushImporter:
    """Reads sessions of Crush."""

    name = "crush"
    label = "Crush session: database"

    def recognizes(self, log: LogFile) -> bool:
        value = first_value(log)
        return isinstance(value, dict) and {"id", "message_count", "prompt_tokens", "title"} <= value.keys()

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        reading = _Reading()
        yield from read_records(log, objects(log), reading.take)
        yield reading.session(log)


class _Reading:
    """The state of reading one session."""

    def __init__(self) -> None:
        self._facts: Mapping[str, Any] = {}
        self._turns = TurnBuilder(in_one_message)
        self._first_words = self._model = ""

    def take(self, record: Record) -> None:
        """Read the session's own record, or a message."""
        value = record.value
        if "role" not in value:
            self._facts = self._facts or value
            return
        parts = [(part["type"], part["data"]) for part in value["parts"]]
        if value["role"] == "assistant":
            self._add_answer(value, parts)
        elif value["role"] == "tool":
            self._add_results(value, parts)
        elif blocks := _typed(parts):
            is_meta = any(kind == "text" and data.get("hidden") for kind, data in parts)
            self._turns.add(_message(value, "user", blocks, is_meta=is_meta))
            if not is_meta:
                self._first_words = request_of(self._first_words, text_of(blocks))

    def _add_answer(self, value: Mapping[str, Any], parts: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Add an answer. Crush sends a summary as a message of the user, and no messages from before it."""
        blocks = [block for kind, data in parts if (block := _block(kind, data))]
        if not blocks:
            return
        if value.get("is_summary_message"):
            self._turns.compacted(ClientCompaction())
            texts = [block for block in blocks if block["type"] == "text"]
            self._turns.add(_message(value, "user", texts or blocks, is_summary=True))
            return
        # A router may choose another model than the one requested.
        self._model = str(value.get("prism_model_id") or value.get("model") or self._model)
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        answer = Answer(
            body={"role": "assistant", "content": blocks},
            source_id=str(value["id"]),
            at=time_of(value.get("created_at")),
            model=self._model,
        )
        self._turns.answer(answer, calls)

    def _add_results(self, value: Mapping[str, Any], parts: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        blocks = [_result(data) for kind, data in parts if kind == "tool_result"]
        if blocks:
            self._turns.result(blocks[0]["tool_use_id"], _message(value, "user", blocks))

    def session(self, log: LogFile) -> ImportedSession:
        facts = self._facts
        parent = facts.get("parent_session_id")
        folder = log.path.parent.parent
        found = {
            "cwd": str(folder.parent) if folder.name == _FOLDER else None,
            "input_tokens": tokens_of(facts, "prompt_tokens"),
            "output_tokens": tokens_of(facts, "completion_tokens"),
            "cost_microusd": microusd_of(facts.get("cost")),
        }
        return ImportedSession(
            external_id=f"crush-{facts.get('id') or log.stem}",
            parent_external_id=f"crush-{parent}" if parent else None,
            format="anthropic",
            agent="crush",
            turns=self._turns.turns(),
            model=self._model,
            title=title_of(str(facts.get("title") or "")) or title_of(self._first_words),
            started_at=time_of(facts.get("created_at")),
            metadata={name: each for name, each in found.items() if each},
        )


def _message(
    value: Mapping[str, Any], role: str, blocks: Sequence[Mapping[str, Any]], **marks: bool
) -> ImportedMessage:
    return ImportedMessage(
        body={"role": role, "content": list(blocks)},
        source_id=str(value["id"]),
        at=time_of(value.get("created_at")),
        **marks,
    )


def _typed(parts: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return the blocks of a user's message: one text with the attached texts and commands, and the files."""
    words = "".join(str(data["text"]) for kind, data in parts if kind == "text").strip()
    files = [data for kind, data in parts if kind == "binary"]
    attached = [data for data in files if str(data.get("MIMEType")).startswith("text/")]
    if attached:
        words += _ATTACHED + "".join(map(_attached, attached))
    for kind, data in parts:
        if kind == "shell_command":
            ran = f"$ {data['command']}\n{data.get('output') or ''}\n(exit code {data.get('exit_code')})"
            words = f"{words}\n\n{ran}" if words else ran
    blocks: list[dict[str, Any]] = [{"type": "text", "text": words}] if words else []
    images = [_file(str(data.get("MIMEType") or ""), data["Data"]) for data in files if data not in attached]
    return [*blocks, *images, *(block for kind, data in parts if (block := _linked(kind, data)))]


def _attached(data: Mapping[str, Any]) -> str:
    tag = f"<file path='{data['Path']}'>" if data.get("Path") else "<file>"
    return f"{tag}\n\n{decoded_text(data['Data'])}\n</file>\n"


def _linked(kind: str, data: Mapping[str, Any]) -> dict[str, Any] | None:
    is_link = kind == "image_url"
    return {"type": "image", "source": {"type": "url", "url": str(data["url"])}} if is_link else None


def _block(kind: str, data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a part of an answer as a content block, or None if it was not sent."""
    match kind:
        case "text":
            text = str(data["text"]).strip()
            return {"type": "text", "text": text} if text else None
        case "reasoning":
            if not data.get("thinking"):
                return None
            block = {"type": "thinking", "thinking": str(data["thinking"])}
            return {**block, "signature": str(data["signature"])} if data.get("signature") else block
        case "tool_call":
            arguments = arguments_of(parsed(data.get("input")))
            return {"type": "tool_use", "id": str(data["id"]), "name": str(data["name"]), "input": arguments}
    return None


def _result(data: Mapping[str, Any]) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": str(data["tool_call_id"])}
    if data.get("is_error"):
        return {**block, "content": str(data.get("content") or ""), "is_error": True}
    if data.get("data"):
        return {**block, "content": [_file(str(data.get("mime_type") or ""), data["data"])]}
    return {**block, "content": str(data.get("content") or "")}


def _file(mime: str, data: Any) -> dict[str, Any]:
    """Return a file as a block. Only images and PDF files can be part of a message."""
    kind = "image" if mime.startswith("image/") else "document" if mime == "application/pdf" else ""
    if not kind:
        return {"type": "text", "text": f"[Attached {mime or 'file'}]"}
    return {"type": kind, "source": {"type": "base64", "media_type": mime, "data": str(data)}}
