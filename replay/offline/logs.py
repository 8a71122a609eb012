"""Read log files as transcripts, without a database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compaction import dialects
from compaction.adapters.tiktoken_counter import counter
from compaction.errors import FormatError
from compaction.messages import Message
from compaction.replay.transcript import FIVE_MINUTES, HOUR, RecordedTurn, Transcript, transcript_of
from importers.base import Damage, ImportedSession
from importers.reading import LogSource, UnreadableLogError
from importers.registry import log_items, recognize
from sessions.services.imports.prepare import with_whole_output
from sessions.store import bodies


def log_transcripts(source: LogSource) -> Iterator[Transcript]:
    """Yield the sessions of one log with a model call; none if it is unreadable or of an unknown format."""
    try:
        log = source.read()
    except UnreadableLogError:
        return
    importer = recognize(log)
    for item in log_items(importer, log) if importer else ():
        if isinstance(item, Damage):
            continue
        try:
            transcript = log_transcript(item)
        except FormatError:
            continue
        if transcript.calls:
            yield transcript


def log_transcript(session: ImportedSession) -> Transcript:
    """Return the transcript of a logged session. Raises FormatError for a message in another format."""
    messages: list[Message] = []
    omitted: set[int] = set()
    turns: list[RecordedTurn] = []
    beside = _tokens(session.system) + _tokens(session.tools)
    for index, turn in enumerate(session.turns):
        bodies = [dict(message.body) for message in turn.messages]
        first = len(messages)
        omitted |= {n for n, each in enumerate(turn.messages, start=first) if each.omitted_from is not None}
        messages += dialects.parse_mixed(
            bodies, default=session.format, counter=counter(), start_position=first, turn=index
        )
        usage = turn.usage
        if usage is not None and not turn.is_usage_final:
            usage = with_whole_output(usage, messages[first:], turn.model or session.model)
        turns.append(
            RecordedTurn(
                index=index,
                first=first,
                end=len(messages),
                beside=beside,
                served=turn.prompt_served,
                usage=usage,
                at=turn.at,
                model=turn.model,
                cost=turn.cost_microusd,
                restarts=turn.client_compaction is not None,
            )
        )
    hour = any(turn.cache_write_1h_tokens for turn in session.turns)
    return transcript_of(
        name=session.external_id,
        format=session.format,
        messages=messages,
        turns=turns,
        model=session.model,
        cache_seconds=HOUR if hour else FIVE_MINUTES,
        omitted=omitted,
    )


def _tokens(value: Any) -> int:
    """Count the tokens of a string's text, or of any other value's JSON, as imports do."""
    if not value:
        return 0
    return counter().count(value if isinstance(value, str) else bodies.json_bytes(value).decode())
