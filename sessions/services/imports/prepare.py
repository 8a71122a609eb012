"""Prepare an imported session for storage: redact, parse and count its messages, price its calls.

Most of an import's time is spent here. It does not use the database, so it can run in other processes (see
`reader.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import pricing
from compaction.errors import FormatError
from compaction.jsontext import MAX_DEPTH
from compaction.messages import Message, Role, Usage
from importers.base import ClientCompaction, ImportedPreamble, ImportedSession, ImportedTurn
from pricing.tokenizers import token_factor
from redaction import Finding, Redaction, redact, redact_bytes
from sessions.services.ingestion import IngestedMessage, NewPreamble, messages_ingest, preamble_ingest
from sessions.store import bodies
from sessions.store.text import storable

#: Maximum number of characters of names and ids.
_MAX_NAME_LENGTH = 200

#: Tokens by which the estimate of a short answer may exceed the true count.
_ESTIMATE_ERROR = 20

#: Context windows that models are commonly offered with, in tokens.
_STANDARD_WINDOWS = (128_000, 200_000, 400_000, 1_000_000)

#: An escaped NUL in JSON, which Postgres accepts neither in text nor in JSONB, and its replacement.
_NUL, _REPLACEMENT = rb"\u0000", rb"\ufffd"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTurn:
    """One model call. `cost_microusd` is the cost in the log, else from the price table, else None.

    `output_reported` are the output tokens in the log if those of `usage` are an estimate. `prompt_served` is
    the estimated size of the call's prompt if it was not the whole transcript. `preamble` is set if the
    system prompt or the tools change with this turn. `billed` is false if the log shows that the response is
    billed to another session.
    """

    messages: Sequence[IngestedMessage]
    model: str = ""
    usage: Usage | None = None
    output_reported: int | None = None
    prompt_served: int | None = None
    cost_microusd: int | None = None
    response_id: str | None = None
    request_id: str | None = None
    at: datetime | None = None
    client_compaction: ClientCompaction | None = None
    preamble: NewPreamble | None = None
    first_token_ms: int | None = None
    duration_ms: int | None = None
    billed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSession:
    """A session of a log, ready to be stored.

    `facts` is the imported session without its turns, system prompt and tools; its strings are redacted.
    `redacted` counts the secrets found, by kind.
    """

    facts: ImportedSession
    turns: Sequence[PreparedTurn]
    preamble: NewPreamble | None = None
    redacted: Mapping[str, int] = field(default_factory=dict)


def session_prepare(imported: ImportedSession, *, redaction: Redaction) -> PreparedSession:
    """Return the session, ready to be stored. Raises `FormatError` if a message does not fit its format."""
    turns, found = _turns(imported, redaction)
    preamble, findings = preamble_ingest(imported.system or None, imported.tools or None, redaction=redaction)
    found.extend(findings)
    facts = _facts(imported, redaction, found)
    return PreparedSession(facts=facts, turns=turns, preamble=preamble, redacted=_counts(found))


def turns_prepare(
    imported: ImportedSession, *, redaction: Redaction
) -> tuple[Sequence[PreparedTurn], Mapping[str, int]]:
    """Return only the turns, and the secrets found in them, by kind. Raises `FormatError`."""
    turns, found = _turns(imported, redaction)
    return turns, _counts(found)


def _turns(imported: ImportedSession, redaction: Redaction) -> tuple[list[PreparedTurn], list[Finding]]:
    found: list[Finding] = []
    return [_turn(turn, imported, redaction, found) for turn in imported.turns], found


def _turn(
    turn: ImportedTurn, imported: ImportedSession, redaction: Redaction, found: list[Finding]
) -> PreparedTurn:
    turn = _without_secrets(turn, redaction, found)
    messages = _messages(turn, imported.format, redaction, found)
    usage, reported = turn.usage, turn.output_reported
    if turn.usage is not None and not turn.is_usage_final:
        values = [message.value for message in messages]
        usage = with_whole_output(turn.usage, values, turn.model or imported.model)
        reported = turn.usage.output_tokens if usage is not turn.usage else None
    turn, mark = replace(turn, usage=usage), turn.client_compaction
    return PreparedTurn(
        messages=messages,
        model=_name(turn.model),
        usage=usage,
        output_reported=reported,
        prompt_served=turn.prompt_served,
        cost_microusd=_cost(turn, imported.model),
        response_id=turn.response_id and _name(turn.response_id),
        request_id=turn.request_id and _name(turn.request_id),
        at=turn.at or next((message.at for message in reversed(turn.messages) if message.at), None),
        client_compaction=mark and replace(mark, trigger=_name(mark.trigger)),
        preamble=_preamble(turn.preamble, redaction, found) if turn.preamble is not None else None,
        first_token_ms=turn.first_token_ms,
        duration_ms=turn.duration_ms,
        billed=turn.billed,
    )


def _preamble(preamble: ImportedPreamble, redaction: Redaction, found: list[Finding]) -> NewPreamble:
    new, findings = preamble_ingest(preamble.system or None, preamble.tools or None, redaction=redaction)
    found.extend(findings)
    return new or NewPreamble(system=None, tools=None, system_tokens=0, tools_tokens=0)


def _without_secrets(turn: ImportedTurn, redaction: Redaction, found: list[Finding]) -> ImportedTurn:
    """Redact the ids in a turn."""
    mark, sources = turn.client_compaction, [message.source_id for message in turn.messages]
    names = [turn.response_id, turn.request_id, mark.trigger if mark else None, *sources]
    clean, findings = redact(names, redaction=redaction)
    if not findings:
        return turn
    found.extend(findings)
    response_id, request_id, trigger, *sources = clean
    pairs = zip(turn.messages, sources, strict=True)
    return replace(
        turn,
        response_id=response_id,
        request_id=request_id,
        client_compaction=mark and replace(mark, trigger=trigger),
        messages=[replace(message, source_id=source) for message, source in pairs],
    )


def with_whole_output(usage: Usage, messages: Iterable[Message], model: str) -> Usage:
    """Return the usage with estimated output tokens if the log reports less than half of the answer's text.

    Claude Code writes the count at which the response began to stream.
    """
    answer = sum(message.tokens for message in messages if message.role is Role.ASSISTANT)
    estimate = round(answer * token_factor(model))
    if usage.calls or estimate - usage.output_tokens <= max(usage.output_tokens, _ESTIMATE_ERROR):
        return usage
    return replace(usage, output_tokens=estimate)


def too_deep() -> FormatError:
    """Return the error for a session with a message that is nested too deeply."""
    return FormatError(f"the JSON of a message is nested deeper than {MAX_DEPTH} levels")


def _messages(
    turn: ImportedTurn, format: str, redaction: Redaction, found: list[Finding]
) -> list[IngestedMessage]:
    values = [dict(message.body) for message in turn.messages]
    # Copied, because orjson leaves unused memory after each result: about 4 kB per short message.
    raw = [bytes(memoryview(bodies.json_bytes(value))) for value in values]
    messages, findings = messages_ingest(raw, values, format=format, redaction=redaction)
    found.extend(findings)
    return [
        replace(
            message,
            source_id=_name(imported.source_id),
            is_meta=imported.is_meta,
            is_summary=imported.is_summary,
            is_pinned=imported.is_pinned,
            omitted_from=imported.omitted_from,
        )
        for message, imported in zip(messages, turn.messages, strict=True)
    ]


def _cost(turn: ImportedTurn, model: str) -> int | None:
    if turn.cost_microusd is not None or turn.usage is None:
        return turn.cost_microusd
    return pricing.price(
        turn.model or model, turn.usage, turn.at, cache_write_1h_tokens=turn.cache_write_1h_tokens
    ).microusd


def _facts(imported: ImportedSession, redaction: Redaction, found: list[Finding]) -> ImportedSession:
    comments = [comment.text for comment in imported.comments]
    authors = [comment.author for comment in imported.comments]
    texts = [imported.title, list(imported.tags), dict(imported.metadata), imported.notes, comments, authors]
    raw = bodies.json_bytes(texts).replace(_NUL, _REPLACEMENT)
    redacted, findings = redact_bytes(raw, redaction=redaction)
    found.extend(findings)
    title, tags, metadata, notes, comments, authors = bodies.json_value(redacted)
    return replace(
        imported,
        turns=(),
        system=None,
        tools=None,
        external_id=_name(imported.external_id),
        parent_external_id=imported.parent_external_id and _name(imported.parent_external_id),
        agent=_name(imported.agent),
        model=_name(imported.model),
        title=title,
        tags=tags,
        metadata=metadata,
        notes=notes,
        comments=[
            replace(comment, text=text, author=_name(author))
            for comment, text, author in zip(imported.comments, comments, authors, strict=True)
        ],
    )


def _name(text: str) -> str:
    return storable(text)[:_MAX_NAME_LENGTH]


def _counts(found: Sequence[Finding]) -> Mapping[str, int]:
    counts: Counter[str] = Counter()
    for finding in found:
        counts[finding.kind] += finding.count
    return counts


def context_window_of(model: str, turns: Iterable[PreparedTurn | ImportedTurn]) -> int | None:
    """Return the model's window, or the standard window at which the client compacted if that is smaller.

    Some models have a longer window only on request, and clients compact shortly before theirs is full.
    """
    turns, window = list(turns), pricing.context_window(model)
    marks = (turn.client_compaction for turn in turns)
    full = [mark.tokens_before or 0 for mark in marks if mark and mark.trigger == "auto"]
    if window is None or not any(full):
        return window
    largest = max(*full, *(turn.usage.prompt_tokens for turn in turns if turn.usage), 0)
    return min([window, *(size for size in _STANDARD_WINDOWS if size >= largest)])
