"""Place imported turns in their session, and write them by COPY: a log can have tens of thousands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from compaction.sizes.breakdown import TokenBreakdown
from sessions.models import AgentSession, Blob, Message, Pin, Turn, TurnSource
from sessions.selectors.convert import usage_fields
from sessions.selectors.token_budgets import limit_of
from sessions.services.blobs import contents_large, contents_put
from sessions.services.imports.prepare import PreparedTurn
from sessions.services.imports.tally import Tally
from sessions.services.ingestion import IngestedMessage
from sessions.store import bodies
from sessions.store.blobs import is_external
from sessions.store.counts import breakdown_pack
from sessions.store.postgres import rows_copy


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedTurn:
    """A turn and its place in the session.

    `prompt` is the breakdown of the prompt of its call, `output_spike` the tokens of its tool outputs
    if they are a spike.
    """

    turn: PreparedTurn
    index: int
    first_position: int
    prompt: TokenBreakdown
    preamble_version: int
    billed: bool
    output_spike: int | None


def turns_place(
    session: AgentSession, turns: Sequence[PreparedTurn], tally: Tally, elsewhere: set[str]
) -> tuple[list[PlacedTurn], Tally]:
    """Return the turns with their places, starting at `tally`, and the counters after them."""
    placed, limit = [], limit_of(session)
    for turn in turns:
        billed = turn.billed and turn.response_id not in elsewhere
        prompt = tally.prompt(turn)
        placed.append(
            PlacedTurn(
                turn=turn,
                index=tally.turns,
                first_position=tally.messages,
                prompt=prompt,
                preamble_version=tally.preamble_version_of(turn),
                billed=billed,
                output_spike=tally.output_spike(turn, limit.tokens) if limit else None,
            )
        )
        tally = tally.after(turn, prompt=prompt, format=session.format, billed=billed)
    return placed, tally


def turns_write(session: AgentSession, turns: Sequence[PlacedTurn]) -> None:
    """Write the turns with their messages and pins. The caller has locked the session, and saves it."""
    blobs = _write_blobs(session.project_id, [message for each in turns for message in each.turn.messages])
    rows_copy(Turn._meta.db_table, (_turn_row(session, placed) for placed in turns))
    messages = [
        (placed, position, message)
        for placed in turns
        for position, message in enumerate(placed.turn.messages, start=placed.first_position)
    ]
    rows_copy(Message._meta.db_table, (_message_row(session, *each, blobs) for each in messages))
    session.omitted_count += sum(message.omitted_from is not None for *_, message in messages)
    pins = [Pin(session=session, position=position) for _, position, message in messages if message.is_pinned]
    Pin.objects.bulk_create(pins, ignore_conflicts=True)


def _turn_row(session: AgentSession, placed: PlacedTurn) -> dict[str, Any]:
    turn, compaction = placed.turn, placed.turn.client_compaction
    client_compaction = compaction and Jsonb(
        {"trigger": compaction.trigger, "tokens_before": compaction.tokens_before}
    )
    return {
        "session_id": session.pk,
        "index": placed.index,
        "at": turn.at or session.started_at,
        "model": turn.model[:200],
        "first_position": placed.first_position,
        "message_count": len(turn.messages),
        "preamble_version": placed.preamble_version,
        "prompt_estimate": placed.prompt.total,
        "component_tokens": breakdown_pack(placed.prompt),
        "output_reported": turn.output_reported,
        "cost_microusd": turn.cost_microusd,
        "source": TurnSource.LOG if turn.messages else TurnSource.TELEMETRY,
        "response_id": turn.response_id,
        "request_id": turn.request_id,
        "first_token_ms": turn.first_token_ms,
        "duration_ms": turn.duration_ms,
        "billed": placed.billed,
        "output_spike": placed.output_spike,
        "client_compaction": client_compaction,
        **usage_fields(turn.usage),
    }


def _message_row(
    session: AgentSession,
    placed: PlacedTurn,
    position: int,
    message: IngestedMessage,
    blobs: Mapping[bytes, UUID],
) -> dict[str, Any]:
    blob = blobs[message.sha256] if message.is_large else None
    return {
        "session_id": session.pk,
        "position": position,
        "turn_index": placed.index,
        "role": message.value.role.value,
        "tokens": message.value.tokens,
        "flags": message.flags,
        "tool_name": message.tool_name,
        "body": None if blob else bodies.pack(message.data),
        "blob_id": blob,
        "source_id": message.source_id,
        "omitted_from": message.omitted_from,
    }


def _write_blobs(project_id: UUID, messages: Iterable[IngestedMessage]) -> Mapping[bytes, UUID]:
    """Store the large contents once per project, and return their ids by SHA-256."""
    large = contents_large(messages)
    if not large:
        return {}
    external = is_external()
    if external:
        contents_put(project_id, large)
    Blob.objects.bulk_create(
        (
            Blob(
                project_id=project_id,
                sha256=sha256,
                size=len(data),
                data=None if external else bodies.pack(data),
            )
            for sha256, data in sorted(large.items())  # sorted to avoid deadlocks between imports
        ),
        ignore_conflicts=True,
        batch_size=100,
    )
    rows = Blob.objects.filter(project_id=project_id, sha256__in=list(large)).values_list("sha256", "id")
    return {bytes(sha256): id for sha256, id in rows}


def billed_elsewhere(session: AgentSession, turns: Sequence[PreparedTurn], *, kept: int = 0) -> set[str]:
    """Return the ids of responses billed to another session: a forked session copies its history.

    The first `kept` turns of the session remain unchanged, even if the other session was deleted, or an
    importer now gives the responses other ids.
    """
    ids = [turn.response_id for turn in turns if turn.response_id]
    if not ids:
        return set()
    rows = Turn.objects.filter(session__project_id=session.project_id, response_id__in=ids, billed=True)
    found = rows.exclude(session_id=session.pk).values_list("response_id", flat=True)
    elsewhere = {response_id for response_id in found if response_id}
    stored = session.turns.filter(index__lt=min(kept, len(turns))).values_list("index", "billed")
    for index, billed in stored:
        if response_id := turns[index].response_id:
            (elsewhere.discard if billed else elsewhere.add)(response_id)
    return elsewhere


def omissions_update(session: AgentSession, turns: Iterable[PreparedTurn]) -> Sequence[IngestedMessage]:
    """Mark the stored messages that the client omitted later. Return those that were not marked before.

    The caller has locked the session, and saves it.
    """
    once = {m.source_id: m for turn in turns for m in turn.messages if m.omitted_from is not None}
    if not once:
        return ()
    rows = session.messages.filter(source_id__in=list(once), omitted_from=None)
    found = list(rows.values_list("position", "source_id"))
    for position, source_id in found:
        session.messages.filter(position=position).update(omitted_from=once[source_id].omitted_from)
    session.omitted_count += len(found)
    return [once[source_id] for _, source_id in found]
