"""Apply the edits of a session to a request that its client is about to send.

The messages are spliced into the body; every other byte stays the client's, except for the parameters of the
provider's engine.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from compaction.capabilities import capabilities_of
from compaction.dialects import get_dialect, parse_message
from compaction.dialects.openai.functions import with_function_calls
from compaction.on_demand import BETA, summarized_count, summary_request, without_remaining
from compaction.provider_engine import ProviderParams, has_threshold, without_threshold
from compaction.provider_summary import begins_with_signed, begins_with_summary, is_compaction
from compaction.validation import validate
from redaction import Redaction
from sessions.services.compactions.on_demand import SummaryRequested
from sessions.services.reconcile.reading import history_read
from sessions.services.reconcile.served import Edits, NotServable, Reason, new_tokens
from sessions.services.reconcile.stored import positions
from sessions.services.reconcile.thinking import without_thinking
from sessions.services.reconcile.values import PromptSource
from sessions.store.bodies import json_bytes, json_value
from sessions.store.rawjson import element_spans, list_start, with_field

_CONTEXT_MANAGEMENT = "context_management"
_OUTPUT_CONFIG = "output_config"

#: Rules that a client may break, and the one that a prompt without thinking does not.
_OF_CLIENT = frozenset({"A7", "A9", "C5", "R3", "G4"})
_BOUND_THINKING = "A11"
#: Rules about single messages. A client that breaks them does so without the edits as well.
_OF_MESSAGES = frozenset({"A8", "C3", "C4", "R6", "G3"})
#: Violated by an edited message in another format. The client's own may have kinds that are not known yet.
_FORMAT = "format"

#: The edits and models with which the provider accepts the prompt. Until the edits change, the client only
#: appends messages, so one check is enough.
_accepted: set[Hashable] = set()
_ACCEPTED_MAX = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A request body with the edits applied; token figures are in the provider's tokens.

    `count` is the number of the client's messages. `estimate` is the size of the prompt in estimated tokens,
    and `source` its session, if contextapp's edits determine it. `betas` are beta headers that the request
    needs if the provider compacts it. `summary` is a request for a summary that should be sent in the
    background. `block_session` is the session of a summary that the provider wrote before, if the request
    begins with it. `is_repaired` is set if thinking was removed that the edits keep, but the model would
    reject.
    """

    body: bytes
    session: str
    tokens_before: int
    tokens_after: int
    count: int = 0
    estimate: int | None = None
    source: PromptSource | None = None
    is_by_provider: bool = False
    betas: tuple[str, ...] = ()
    summary: SummaryNeeded | None = None
    block_session: UUID | None = None
    is_repaired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryNeeded:
    """The body of a request for a summary, and the messages that it will replace."""

    body: bytes
    requested: SummaryRequested


def edits_splice(
    edits: Edits, body: bytes, *, redaction: Redaction, model: str, field: str, others_until: int = 0
) -> Served:
    """Return the request with the edits applied. Uses no database.

    The first `others_until` messages existed when the session's requests last had other edits. The thinking
    of those that are not recorded yet is bound to these edits.

    Raises `NotServable` if the request does not continue the history that the edits are for, or if the
    provider would reject it with the edits; `BadJson` or `InvalidHistory` if it cannot be read.
    """
    reading = history_read(body, histories=[edits.history], redaction=redaction, field=field)
    if reading.digest_at(edits.history.count) != bytes(edits.history.digest):
        raise NotServable(Reason.HISTORY)
    new = new_tokens(reading, edits.history.count, edits.format).total
    before, after = (edits.calibration.provider(size + new) for size in (edits.raw, edits.shown))
    messages: list[bytes] = []
    first = edits.history.count
    unrecorded = reading.from_index(first)[0][: max(others_until - first, 0)]
    is_repaired = capabilities_of(model).bound_thinking and any(b'thinking"' in each for each in unrecorded)
    if not edits.changes_nothing:
        body, messages = _splice(edits, body, field)
        is_repaired = not _accepts_thinking(messages, edits, model) or is_repaired
    body = without_thinking(body) if is_repaired else body
    served = Served(
        body=body,
        session=edits.name,
        count=reading.count,
        tokens_before=before,
        tokens_after=after,
        estimate=edits.shown + new if edits.provider is None and not is_repaired else None,
        source=PromptSource(edits.session_id, edits.compaction),
        is_repaired=is_repaired,
    )
    follows_block = _is_block(messages)
    served = _with_provider(served, edits.provider, reading.fields, follows_block=follows_block)
    return replace(
        served,
        summary=_summary(edits, body, reading.fields, field),
        block_session=edits.session_id if follows_block else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionParams:
    """The parameters of the provider's engine for a session, its name and the size of its last prompt."""

    name: str
    tokens: int
    provider: ProviderParams


def parameters_apply(params: SessionParams, body: bytes, fields: Mapping[str, Any]) -> Served:
    """Return a request with the parameters of the provider's engine, and without edits."""
    served = Served(body=body, session=params.name, tokens_before=params.tokens, tokens_after=params.tokens)
    return _with_provider(served, params.provider, fields, follows_block=False)


def _is_block(messages: Sequence[bytes]) -> bool:
    """Return whether the messages begin with a summary that the provider wrote on demand."""
    return bool(messages) and b'"signature"' in messages[0] and begins_with_signed(json_value(messages[0]))


def _with_provider(
    served: Served, params: ProviderParams | None, fields: Mapping[str, Any], *, follows_block: bool
) -> Served:
    """Return the request with the parameters of the provider's engine, and the client's own unchanged.

    Without `params`, contextapp compacts the session. Anthropic rejects some fields of the client in a
    request that begins with a summary that it wrote on demand.
    """
    body, given = served.body, fields.get(_CONTEXT_MANAGEMENT)
    betas: tuple[str, ...] = (BETA,) if follows_block else ()
    value = without_threshold(given) if follows_block else given
    if params is not None:
        thinking = fields.get("thinking")
        if not isinstance(thinking, Mapping) or thinking.get("type") not in {"enabled", "adaptive"}:
            params = params.without_thinking()
        params = params.following_block() if follows_block else params
        value, betas = params.merged(value), params.betas
    if value != given:
        body = with_field(body, _CONTEXT_MANAGEMENT, json_bytes(value))
    config = fields.get(_OUTPUT_CONFIG)
    if follows_block and config != (kept := without_remaining(config)):
        body = with_field(body, _OUTPUT_CONFIG, json_bytes(kept))
    return replace(served, body=body, is_by_provider=params is not None, betas=betas)


def _summary(edits: Edits, body: bytes, fields: Mapping[str, Any], field: str) -> SummaryNeeded | None:
    """Return the request for a summary of the beginning of a request, if one is due and possible.

    `body` is the request with the edits applied. A client that lets the provider summarize at a threshold has
    decided otherwise.
    """
    if edits.on_demand is None or has_threshold(fields.get(_CONTEXT_MANAGEMENT)):
        return None
    spans = element_spans(body, list_start(body, field) or 0)
    values = [json_value(body[begin:end]) for begin, end in spans]
    if any(begins_with_summary(value) and not begins_with_signed(value) for value in values):
        return None
    roles, sizes = [value.get("role", "") for value in values], [end - begin for begin, end in spans]
    count = summarized_count(roles, sizes, keep=edits.on_demand.keep)
    before = _position_at(edits, count) if count is not None else None
    if count is None or before is None:
        return None
    request = summary_request(
        {**fields, "messages": values}, count=count, compaction=edits.on_demand.compaction
    )
    requested = SummaryRequested(session_id=edits.session_id, before=before, in_force=edits.in_force)
    return SummaryNeeded(body=request, requested=requested)


def _position_at(edits: Edits, index: int) -> int | None:
    """Return the position of a message of the request, or None if it is not stored or was generated."""
    piece: int | bytes = edits.count + index - len(edits.pieces)
    if index < len(edits.pieces):
        piece = edits.pieces[index]
    if isinstance(piece, bytes) or piece >= edits.history.count:
        return None
    return positions(edits.history, edits.message_count)[piece]


def _splice(edits: Edits, body: bytes, field: str) -> tuple[bytes, list[bytes]]:
    """Return the body with other messages, every other byte unchanged, and the messages."""
    start = list_start(body, field)
    assert start is not None  # the body was read
    spans = element_spans(body, start)
    if not spans:
        raise NotServable(Reason.UNREADABLE)
    own = [body[begin:end] for begin, end in spans]
    pieces = edits.pieces
    if any(b'"function_call"' in message for message in own):
        pieces = [_with_function_calls(piece) if isinstance(piece, bytes) else piece for piece in pieces]
    messages = [piece if isinstance(piece, bytes) else own[piece] for piece in pieces]
    messages += own[edits.count :]
    return body[:start] + b",".join(messages) + body[spans[-1][1] :], messages


def _with_function_calls(piece: bytes) -> bytes:
    return json_bytes(with_function_calls(json_value(piece))) if b'"function_' in piece else piece


def _edited(edits: Edits, messages: Sequence[bytes]) -> range:
    """Return the indices of the messages that follow an edit and existed when it was made.

    The provider ignores what precedes its summary, so removing that is not an edit; nor is the summary.
    """
    has_summary = b'"compaction"' in messages[0] and is_compaction(
        parse_message(json_value(messages[0]), default=None, position=0, turn=0)
    )
    pieces = edits.pieces
    own = [(index, piece) for index, piece in enumerate(pieces) if isinstance(piece, int)]
    end = next((index for index, piece in own if piece >= edits.edited), len(pieces))
    at, kept = own[0] if own else (0, 0)
    removed = kept - at if has_summary else 0
    others = range(int(has_summary), len(pieces))
    return range(next((index for index in others if pieces[index] != removed + index), end), end)


def _accepts_thinking(messages: Sequence[bytes], edits: Edits, model: str) -> bool:
    """Return whether the model accepts the thinking in the messages.

    Checks the messages only once for these edits and this model if the stored ones are regular. Raises
    `NotServable` if the provider would reject them even without thinking.
    """
    checked = edits.session_id, edits.version, model
    if edits.is_regular and checked in _accepted:
        return True
    rules = _violated(messages, edits, model)
    if rules - {_BOUND_THINKING}:
        raise NotServable(Reason.INVALID if edits.is_regular else Reason.IRREGULAR)
    if rules:
        return False
    if len(_accepted) >= _ACCEPTED_MAX:
        _accepted.clear()
    _accepted.add(checked)
    return True


def _violated(messages: Sequence[bytes], edits: Edits, model: str) -> set[str]:
    """Return the rules of the provider that the messages violate.

    Rules about the last message are left to the client: it knows whether it may prefill an answer. So are
    reasoning items without encrypted content: it knows whether the provider stores its responses. Fields that
    the provider may not know are those of the client.
    """
    capabilities = capabilities_of(model)
    values = [json_value(data) for data in messages]
    edited = _edited(edits, messages)
    found = validate(values, edits.format, capabilities=capabilities, edited=edited)
    dialect = get_dialect(edits.format)
    edited_values = [value for index, value in enumerate(values) if _is_edit(edits, index)]
    is_foreign = any(dialect.message_error(value) is not None for value in edited_values)
    rules = {each.rule for each in found if each.rule not in _OF_MESSAGES or _is_edit(edits, each.position)}
    return rules - _OF_CLIENT | ({_FORMAT} if is_foreign else set())


def _is_edit(edits: Edits, index: int) -> bool:
    """Return whether a message of the prompt is an edited or generated one, not the client's own."""
    return index < len(edits.pieces) and isinstance(edits.pieces[index], bytes)
