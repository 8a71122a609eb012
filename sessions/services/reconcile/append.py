"""Append to a history that this process has reconciled before, with one statement and without a lock.

The process keeps the history and the state of the prompt after each reconciliation. The statement writes
nothing if the session or the history has changed since. `history_reconcile` handles this and every other
case, with the same result.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db import connection

from sessions.models import ClientHistory
from sessions.selectors.prompts.state import PromptState
from sessions.selectors.prompts.stored import messages_now
from sessions.services.compactions.preparation import preparations
from sessions.services.push.eligibility import turn_eligible
from sessions.services.push.parameters import write_parameters
from sessions.services.push.session_state import (
    state_after,
    state_cached,
    state_forget,
    state_read,
    state_remember,
)
from sessions.services.push.statements import WRITE_HISTORY
from sessions.services.push.triggers import trigger_possible
from sessions.services.push.values import NewTurn, Push, Target
from sessions.services.reconcile.continued import REFERENCES
from sessions.services.reconcile.known_messages import reports_stored_answer
from sessions.services.reconcile.matching import is_side_request
from sessions.services.reconcile.new_turn import push_of
from sessions.services.reconcile.reading import Reading, history_read_after
from sessions.services.reconcile.stored import is_current
from sessions.services.reconcile.values import PREVIOUS_RESPONSE, Reconciled, Request, Status
from sessions.store.postgres import row_fetch
from sessions.store.prompt_bytes import PromptMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The history of a session, and the state of its prompt after it was reconciled."""

    history: ClientHistory
    prompt: PromptState


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """The result, with the prompt."""

    reconciled: Reconciled
    state: PromptState
    messages: PromptMessages


#: By session. A state contains the system prompt, the tools and the last recap.
_known: OrderedDict[UUID, _Known] = OrderedDict()
_KNOWN_SIZE = 200


def history_remember(reconciled: Reconciled, state: PromptState) -> None:
    """Keep the history for the next request, with the state of the prompt that was read after it."""
    if reconciled.history is not None:
        _remember(_Known(history=_copy(reconciled.history), prompt=state))


def history_append(target: Target, request: Request) -> Appended | None:
    """Store a turn if the request only appends to the last one that this process has reconciled.

    Returns None and stores nothing if `history_reconcile` has to handle the request. Raises `InvalidHistory`,
    `BadJson` or the errors of `request.read`.
    """
    known = _known.get(target.session_id)
    # Within an open transaction, the row may change again without a new version.
    if known is None or connection.in_atomic_block:
        return None
    if request.idempotency_key is not None:
        return None
    reading = history_read_after(request.body, known.history, redaction=request.redaction)
    if reading is None or reading.fields.get(PREVIOUS_RESPONSE) is not None:
        return None
    if any(REFERENCES in element for element in reading.elements):
        return None
    sent = request.read(reading.fields)
    count = known.history.count
    is_extended = reading.digest_at(count) == bytes(known.history.digest) and reading.count > count
    if not is_extended or is_side_request(reading, sent):
        return None
    push, preamble_hash = push_of(
        request, sent, reading, known.history, first=count, format=known.prompt.format
    )
    if reports_stored_answer(push):
        return None
    history = _continued(known.history, reading, preamble_hash)
    turn = _turn(target, push, known)
    if turn is None:
        return None
    parameters = {
        **write_parameters(turn, push, target, answer=None, is_new_call=False),
        **_history_parameters(known.history, history),
        "edits_revision": known.prompt.edits_revision,
    }
    row = row_fetch(WRITE_HISTORY, parameters)
    if row is None:
        state_forget(target.session_id)
        _known.pop(target.session_id, None)
        return None
    return _appended(turn, push, history, known, version=row[0], first=count)


def _turn(target: Target, push: Push, known: _Known) -> NewTurn | None:
    """Return the turn, or None if one statement cannot store it."""
    state = state_cached(target.session_id) or state_read(target, push)
    if state is None or state.version != known.prompt.version:
        return None
    if not is_current(known.history, state.message_count):
        return None
    turn = turn_eligible(state, push)
    if turn is None or turn.spike is not None or trigger_possible(turn) is not None:
        return None
    return turn


def _appended(
    turn: NewTurn, push: Push, history: ClientHistory, known: _Known, *, version: str, first: int
) -> Appended | None:
    """Cache the state after the turn, and return the result."""
    session_id = turn.session.id
    state_remember(state_after(turn, push, version=version))
    if turn.plan_turn == turn.index:
        preparations.request(session_id, turn.index)
    state = replace(
        known.prompt,
        version=version,
        format=turn.format,
        model=turn.model,
        turn_count=turn.index + 1,
        message_count=turn.first_position + len(turn.values),
        context=turn.context,
        shown=turn.shown,
        continuation=turn.continuation,
        calibration=turn.calibration,
        served_turn=turn.index,
        served_revision=known.prompt.edits_revision,
    )
    _remember(_Known(history=history, prompt=state))
    stored = {
        value.position: (value.role.value, value.tokens, message.data)
        for value, message in zip(turn.values, push.messages, strict=True)
    }
    messages = messages_now(state, stored)
    if messages is None:
        return None  # the session was deleted in the meantime
    reconciled = Reconciled(
        status=Status.APPENDED, session_id=session_id, first=first, turn=turn.index, redacted=push.redacted
    )
    return Appended(reconciled=reconciled, state=state, messages=messages)


def _remember(known: _Known) -> None:
    _known.pop(known.history.pk, None)
    _known[known.history.pk] = known
    while len(_known) > _KNOWN_SIZE:
        _known.popitem(last=False)


def _continued(history: ClientHistory, reading: Reading, preamble_hash: bytes) -> ClientHistory:
    """Return the history with the messages of a request that extends it."""
    found = _copy(history)
    reading.apply_to(found)
    found.preamble_hash = preamble_hash
    return found


_COLUMNS = [field.attname for field in ClientHistory._meta.concrete_fields]


def _copy(history: ClientHistory) -> ClientHistory:
    """Return a copy without the loaded session."""
    return ClientHistory(**{name: getattr(history, name) for name in _COLUMNS})


def _history_parameters(before: ClientHistory, after: ClientHistory) -> Mapping[str, Any]:
    return {
        "known_count": before.count,
        "known_digest": bytes(before.digest),
        "history_count": after.count,
        "digest": after.digest,
        "history_preamble": bytes(after.preamble_hash),
        "prefix_count": after.prefix_count,
        "prefix_bytes": after.prefix_bytes,
        "prefix_hash": after.prefix_hash,
        "prefix_digest": after.prefix_digest,
    }
