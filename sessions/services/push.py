"""Push: a turn becomes rows. The hot path of the product, so it is SQL, and constant in the history.

Two statements in one transaction: the first locks the session and reads all that is needed to decide, the
second writes the turn, its messages and the counters. Tokens were counted before the lock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import orjson
from django.db import IntegrityError, connection, transaction
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from compaction.invariants.continuation import Continuation
from compaction.messages import Message, Usage
from sessions import bodies
from sessions.ledger import Ledger
from sessions.models.transcript import MessageFlag
from sessions.services.push_sql import LOCK, WRITE, WRITE_PREAMBLE


class SessionGone(LookupError):
    """No such session in the project of the key, or the key no longer lives."""


class StaleTurn(Exception):
    """Another writer came first. `next_turn` is the index that the next push will get."""

    def __init__(self, next_turn: int) -> None:
        super().__init__(f"the session's next turn is {next_turn}")
        self.next_turn = next_turn


class KeyReused(Exception):
    """The idempotency key was used in this session, with another body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedMessage:
    """One message: its bytes as pushed (secrets already out), and what the core reads in them."""

    data: bytes
    value: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPreamble:
    """System text and tools that came with a push, as JSON bytes, with their tokens."""

    system: bytes | None
    tools: bytes | None
    system_tokens: int
    tools_tokens: int

    @property
    def hash(self) -> bytes:
        return bodies.content_hash(b"%b\0%b" % (self.system or b"", self.tools or b""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """A turn as it came in."""

    messages: Sequence[PushedMessage]
    model: str = ""
    usage: Usage | None = None
    cost_microusd: int | None = None
    preamble: NewPreamble | None = None
    expected_turn: int | None = None
    idempotency_key: str | None = None
    body_hash: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """What a push needs to know of its session, read under the lock."""

    id: UUID
    project_id: UUID
    format: str
    model: str
    turn_count: int
    message_count: int
    context: Ledger
    shown: Ledger
    seam: Continuation
    preamble_version: int
    preamble_hash: bytes | None
    peak_prompt_tokens: int
    calibration: float
    budget_tokens: int | None
    context_window: int | None
    policy: Mapping[str, Any]
    fired_tokens: int | None
    fired_turn: int | None
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """What was stored. `shown` is the size of the prompt that the next fetch gets, by component."""

    session: Locked
    turn: int
    first_position: int
    shown: Ledger
    context: Ledger
    seam: Continuation
    preamble_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The push had been stored before: the answer that it got then."""

    answer: bytes


#: What happens to the session after its turn was stored, within the same transaction: the hard trigger.
AfterTurn = Callable[[Pushed], dict[str, Any]]


def turn_push(
    *, key_id: UUID, project_id: UUID, session_id: UUID, push: Push, answer: AfterTurn
) -> bytes | Replayed:
    """Stores a turn and answers the JSON that `answer` makes of it, in one transaction.

    Raises `SessionGone`, `StaleTurn`, `KeyReused`; then nothing is stored.
    """
    try:
        return _push(key_id, project_id, session_id, push, answer)
    except IntegrityError as error:
        if "turn_idempotency_key" not in str(error):
            raise
        # The same push came twice at once, and the other one was first: its answer is there now.
        return _push(key_id, project_id, session_id, push, answer)


def _push(
    key_id: UUID, project_id: UUID, session_id: UUID, push: Push, answer: AfterTurn
) -> bytes | Replayed:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            LOCK,
            {
                "key": key_id,
                "project": project_id,
                "session": session_id,
                "idempotency_key": push.idempotency_key,
            },
        )
        row = cursor.fetchone()
        if row is None:
            raise SessionGone(str(session_id))
        if row[-1] is not None:
            if bytes(row[-2]) != push.body_hash:
                raise KeyReused(push.idempotency_key)
            return Replayed(answer=bytes(row[-1]))
        session = _locked(row)
        if push.expected_turn is not None and push.expected_turn != session.turn_count:
            raise StaleTurn(session.turn_count)
        pushed, parameters = _account(session, push)
        cursor.execute(WRITE, parameters)
        if push.preamble is not None and pushed.preamble_version != session.preamble_version:
            cursor.execute(WRITE_PREAMBLE, _preamble_parameters(pushed, push.preamble))
        body = bodies.json_bytes(answer(pushed))
        if push.idempotency_key is not None:
            cursor.execute(
                "UPDATE agent_sessions_turn SET answer = %s WHERE session_id = %s AND index = %s",
                [body, session.id, pushed.turn],
            )
        return body


def _locked(row: Sequence[Any]) -> Locked:
    return Locked(
        id=row[0],
        project_id=row[1],
        format=row[2],
        model=row[3],
        turn_count=row[4],
        message_count=row[5],
        context=Ledger(tokens=_json(row[6])),
        shown=Ledger(tokens=_json(row[7])),
        seam=Continuation(open_calls=tuple(row[8]), regular=not row[9]),
        preamble_version=row[10],
        preamble_hash=bytes(row[11]) if row[11] is not None else None,
        peak_prompt_tokens=row[12],
        calibration=row[13],
        budget_tokens=row[14],
        context_window=row[15],
        policy=_json(row[16]),
        fired_tokens=row[17],
        fired_turn=row[18],
        failures=row[19],
    )


def _json(value: Any) -> Any:
    return orjson.loads(value) if isinstance(value, str | bytes) else value


def _account(session: Locked, push: Push) -> tuple[Pushed, dict[str, Any]]:
    """What the turn makes of the session, and the parameters that write it."""
    first = session.message_count
    values = [
        replace(message.value, position=first + index, turn=session.turn_count)
        for index, message in enumerate(push.messages)
    ]
    context, shown, preamble = session.context, session.shown, session.preamble_version
    if push.preamble is not None and push.preamble.hash != session.preamble_hash:
        sizes = {"system": push.preamble.system_tokens, "tools": push.preamble.tools_tokens}
        context, shown, preamble = context.set(**sizes), shown.set(**sizes), preamble + 1
    asked, served = context.prompt_of(values), shown.prompt_of(values)
    seam = session.seam.after(values, session.format)
    pushed = Pushed(
        session=session,
        turn=session.turn_count,
        first_position=first,
        shown=shown.add(values),
        context=context.add(values),
        seam=seam,
        preamble_version=preamble,
    )
    reported = push.usage.prompt_tokens if push.usage else None
    parameters = {
        "session": session.id,
        "project": session.project_id,
        "turn": pushed.turn,
        "model": push.model,
        "first": first,
        "count": len(values),
        "preamble": preamble,
        "preamble_hash": push.preamble.hash if push.preamble else session.preamble_hash,
        "idempotency_key": push.idempotency_key,
        "body_hash": push.body_hash if push.idempotency_key is not None else None,
        "estimate": asked.total,
        "reported": reported,
        "served": served.total,
        "size": reported or served.total,
        "components": Jsonb(served.tokens),
        "context": Jsonb(pushed.context.tokens),
        "shown": Jsonb(pushed.shown.tokens),
        "open_calls": list(seam.open_calls),
        "needs_repair": not seam.regular,
        "cost": push.cost_microusd,
        "unpriced": int(push.usage is not None and push.cost_microusd is None),
        **_usage_parameters(push.usage),
        **_message_parameters(values, push.messages),
    }
    return pushed, parameters


def _preamble_parameters(pushed: Pushed, preamble: NewPreamble) -> dict[str, Any]:
    return {
        "session": pushed.session.id,
        "version": pushed.preamble_version,
        "from_turn": pushed.turn,
        "system": preamble.system and bodies.pack(preamble.system),
        "tools": preamble.tools and bodies.pack(preamble.tools),
        "system_tokens": preamble.system_tokens,
        "tools_tokens": preamble.tools_tokens,
    }


def _usage_parameters(usage: Usage | None) -> dict[str, int | None]:
    return {
        "uncached": usage.uncached_tokens if usage else None,
        "cache_read": usage.cache_read_tokens if usage else None,
        "cache_write": usage.cache_write_tokens if usage else None,
        "output": usage.output_tokens if usage else None,
    }


def _message_parameters(values: Sequence[Message], messages: Sequence[PushedMessage]) -> dict[str, Any]:
    large = {
        hashlib.sha256(message.data).digest(): message.data
        for message in messages
        if len(message.data) > bodies.BLOB_BYTES
    }
    names = {data: digest for digest, data in large.items()}
    return {
        "positions": [value.position for value in values],
        "roles": [value.role.value for value in values],
        "tokens": [value.tokens for value in values],
        "flags": [flags_of(value) for value in values],
        "tool_names": [tool_name_of(value) for value in values],
        "hashes": [bodies.content_hash(message.data) for message in messages],
        "bodies": [None if m.data in names else bodies.pack(m.data) for m in messages],
        "in_blob": [names.get(message.data) for message in messages],
        "blob_ids": [uuid7() for _ in large],
        "blob_hashes": list(large),
        "blob_sizes": [len(data) for data in large.values()],
        "blob_data": [bodies.pack(data) for data in large.values()],
    }


def flags_of(value: Message) -> int:
    return int(MessageFlag.ERROR) if any(result.is_error for result in value.tool_results) else 0


def tool_name_of(value: Message) -> str:
    return next((call.name for call in value.tool_calls), "")[:200].replace("\0", "")
