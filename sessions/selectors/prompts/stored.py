"""Read the prompt of a session from the database, now or as of an earlier turn.

Reading the current prompt takes two statements, regardless of the length of the session: one for its state
and its prompt snapshot, and one for the messages after the snapshot, unless this process has cached them.
`store.prompt_bytes` assembles the request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import LiteralString
from uuid import UUID

from django.db import connection
from django.db.models import Q

from compaction.sizes.breakdown import TokenBreakdown
from compaction.sizes.calibration import Calibration
from compaction.view import apply
from compaction.view.components import Components
from sessions.models import Compaction, Message, Preamble, Turn
from sessions.selectors.compactions.client_context import client_start, edits_from
from sessions.selectors.compactions.edits import edits_at
from sessions.selectors.compactions.omissions import not_omitted
from sessions.selectors.convert import message_bytes, message_value
from sessions.selectors.prompts.cache import CachedPreamble, CachedPrompt, prompt_cache
from sessions.selectors.prompts.state import PromptState
from sessions.selectors.token_budgets import calibration_of
from sessions.selectors.transcripts.rows import IN_SPANS
from sessions.store.blobs import body_read
from sessions.store.postgres import array_literal, rows_fetch
from sessions.store.prompt_bytes import PromptMessages, messages_of_view
from sessions.store.prompt_snapshots import PromptOutline, Span

_ROWS: LiteralString = f"""
SELECT m.position, m.role, m.tokens, m.omitted_from, coalesce(m.body, b.data), b.project_id, b.sha256
{IN_SPANS}
"""


#: The role, tokens and JSON of messages by position; None if the client has omitted the message since.
Rows = Mapping[int, tuple[str, int, bytes] | None]


def messages_now(state: PromptState, stored: Rows | None = None) -> PromptMessages | None:
    """Return the messages of the current prompt, or None if the session was deleted in the meantime.

    Reads only the messages that follow those of the session's last fetch from this process, and none if the
    session has not changed since. `stored` are the newest ones by position, if the caller has just stored
    them: they are not read.
    """
    if connection.in_atomic_block:  # what the transaction has written may be rolled back
        return _messages_read(state)
    known = prompt_cache.find(state.id, version=state.cached_version, end=state.message_count)
    if known is not None and (known.row, known.end) == (state.row, state.message_count):
        return known.messages
    messages = (_messages_after(state, known, stored) if known is not None else None) or _messages_read(state)
    if messages is not None and state.message_count > state.snapshot_end:
        messages_keep(state, messages)
    return messages


def messages_keep(state: PromptState, messages: PromptMessages) -> None:
    """Cache the messages of a prompt whose last one is unchanged by edits.

    Messages whose content is lost are not cached, because the object may be restored.
    """
    if not messages.is_complete:
        return
    preamble = CachedPreamble(version=state.preamble_version, system=state.system, tools=state.tools)
    found = CachedPrompt(
        version=state.cached_version,
        row=state.row,
        end=state.message_count,
        preamble=preamble,
        messages=messages,
    )
    prompt_cache.keep(state.id, found)


def _messages_read(state: PromptState) -> PromptMessages | None:
    """Return the messages of the current prompt like `messages_now`, without the cache."""
    outline = state.snapshot().append((state.snapshot_end, state.message_count))
    spans = outline.spans
    rows = _rows(state.id, spans)
    return outline.fill(rows) if len(rows) == sum(end - first for first, end in spans) else None


def _messages_after(state: PromptState, known: CachedPrompt, stored: Rows | None) -> PromptMessages | None:
    """Return a cached prompt with the messages that follow it, or None if it cannot be extended."""
    if stored is not None and min(stored) == known.end:
        return known.messages.append(PromptOutline(entries=[(known.end, state.message_count)]).fill(stored))
    return messages_extend(
        known, _rows(state.id, [(known.end - 1, state.message_count)]), state.message_count
    )


def messages_extend(known: CachedPrompt, rows: Rows, end: int) -> PromptMessages | None:
    """Return a cached prompt with the messages that follow it. `rows` begin with its last message.

    Returns None if that message is not stored any more, because an earlier state of the database has been
    restored, if the client has omitted it since, or if a message before `end` is missing.
    """
    span = known.end - 1, end
    if len(rows) < span[1] - span[0]:
        return None
    read = PromptOutline(entries=[span]).fill(rows)
    if (read.pieces[:1], read.manifest[:1]) != (known.messages.pieces[-1:], known.messages.manifest[-1:]):
        return None
    return known.messages.append(replace(read, pieces=read.pieces[1:], manifest=read.manifest[1:]))


def _rows(session_id: UUID, spans: Sequence[Span]) -> Rows:
    firsts, ends = map(array_literal, zip(*spans, strict=True))
    parameters = {"session": session_id, "firsts": firsts, "ends": ends}
    return {
        at: (role, tokens, body_read(data, project_id, sha256, role)) if omitted_from is None else None
        for at, role, tokens, omitted_from, data, project_id, sha256 in rows_fetch(_ROWS, parameters)
    }


def unfit_reason(*, session_id: UUID, turn: int, tokens: int, budget: int) -> str:
    """Return why the prompt after `turn` exceeds the budget, as recorded by the turn's newest compaction.

    `tokens` is the size of the prompt in the provider's tokens.
    """
    shown_in = Q(first_turn=turn) | Q(first_turn=None, turn_index=turn)
    rows = Compaction.objects.filter(shown_in, session_id=session_id).order_by("-number")
    recorded: str | None = rows.values_list("facts__reason", flat=True).first()
    size = f"exceed the budget of {budget:,}"
    if recorded and f"{size}:" in recorded:  # the budget has not changed since
        return recorded
    return f"{tokens:,} tokens {size}, and no compaction shortened the prompt enough"


def prompt_at(state: PromptState, *, turn: int) -> tuple[PromptState, PromptMessages] | None:
    """Return the state and the messages of the prompt after `turn`, or None if there is no such turn.

    Reads the whole history up to that turn, so it is slower than reading the current prompt.
    """
    row = Turn.objects.filter(session_id=state.id, index=turn).first()
    if row is None:
        return None
    end = row.first_position + row.message_count
    start = client_start(session_id=state.id, context_start=state.context_start, turn=turn)
    rows = list(
        Message.objects.filter(not_omitted(end), session_id=state.id, position__gte=start, position__lt=end)
        .select_related("blob")
        .order_by("position")
    )
    values = [message_value(message, state.format) for message in rows]
    preamble = Preamble.objects.filter(session_id=state.id, version=row.preamble_version).first()
    components = components_of(preamble)
    batches = edits_at(session_id=state.id, turn=turn)
    edits = edits_from((edit for batch in batches for edit in batch), start)
    view = apply(edits, values, components=components)
    raw = {message.position: message_bytes(message) for message in rows}
    messages, after = messages_of_view(view, raw, state.format)
    model = row.model or state.model
    past = replace(
        state,
        model=model,
        calibration=_past_calibration(state, row, model),
        own_budget=state.own_budget if row.budget is None else row.budget,
        turn_count=turn + 1,
        message_count=end,
        context=TokenBreakdown().set(system=components.system, tools=components.tools).add(values),
        shown=TokenBreakdown.of_view(view),
        continuation=after,
        compaction_count=_compactions_until(state, turn),
        preamble_version=row.preamble_version,
        system=preamble.system if preamble else None,
        tools=preamble.tools if preamble else None,
    )
    return past, messages


def _past_calibration(state: PromptState, turn: Turn, model: str) -> Calibration:
    """Return the calibration when the turn was pushed.

    For an imported turn, return the session's, or that of the turn's model if no usage was reported.
    """
    if turn.calibration_factor is not None:
        return Calibration(initial=turn.calibration_factor, overhead=turn.calibration_overhead or 0)
    if state.calibration.reports or model == state.model:
        return state.calibration
    return calibration_of({}, model=model)


def _compactions_until(state: PromptState, turn: int) -> int:
    """Return how many compactions had changed the prompt by the end of `turn`."""
    applied = Compaction.objects.filter(session_id=state.id, state__in=Compaction.APPLIED)
    return applied.filter(first_turn__lte=turn).count()


def components_of(preamble: Preamble | None) -> Components:
    """Return the tokens of the system prompt and the tools."""
    if preamble is None:
        return Components()
    return Components(system=preamble.system_tokens, tools=preamble.tools_tokens)
