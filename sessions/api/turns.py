"""`sessions/{id}/turns/`: push and list turns."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from msgspec.structs import replace

from sessions.api.auth import Principal
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import Conflict, InvalidField, InvalidRequest, sentence, unknown_field
from sessions.api.ingestion import ingest_messages, ingest_preamble, reject_secret
from sessions.api.lookup import with_session
from sessions.api.paging import cursor_encode, limit_param, number_cursor, paging
from sessions.api.parameters import idempotency_parameter, int_param, int_parameter
from sessions.api.reported_call import CALL_FIELDS, call_read, with_response_fields
from sessions.api.schema import operation
from sessions.api.serializers import turns as serializers
from sessions.api.serializers.fields import MAX_TOKENS
from sessions.selectors.convert import latency_json, usage_json
from sessions.selectors.lists.api import pushed_messages, session_turns, turns_page
from sessions.selectors.lookups import Route
from sessions.services.memory.update_requests import memory_update_request
from sessions.services.push.preambles import preamble_complete
from sessions.services.push.session_state import route_refresh
from sessions.services.push.turns import KeyReused, SessionGone, StaleTurn, turn_push
from sessions.services.push.values import Push, Replayed, Target
from sessions.store.counts import breakdown_unpack
from sessions.store.rawjson import raw_elements

_FIELDS = CALL_FIELDS | {"messages", "system", "tools", "expected_turn"}


class Turns(Endpoint):
    checks_key_itself = ("GET", "POST")

    @operation(
        "turns_list",
        "List turns",
        serializers.TurnPage,
        parameters=[
            int_parameter("last", "Return only the newest turns, 1 to 200.", minimum=1, maximum=200),
            *paging(),
        ],
    )
    def get(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Returns turns with their messages as pushed (with secrets redacted), oldest first."""
        limit = limit_param(call)
        last = int_param(call, "last", default=0, minimum=1, maximum=200)
        cursor = number_cursor(call)
        key_id, project_id = call.principal.key_id, call.principal.project_id
        session = with_session(
            call,
            session_id,
            lambda route: session_turns(key_id=key_id, project_id=project_id, session_id=route.id),
        )
        first = max(0, session.turn_count - last) if last else 0
        if cursor is not None:
            first = cursor
        rows = turns_page(session_id=session.id, first=first, limit=(last or limit) + 1)
        page, more = rows[: last or limit], rows[last or limit :]
        messages = pushed_messages(session_id=session.id, turns=page)
        return json_response(
            {
                "data": [turn_json(row, messages.get(row.index, [])) for row in page],
                "next_cursor": cursor_encode(more[0].index) if more else None,
            }
        )

    @operation(
        "turns_push",
        "Push a turn",
        parameters=[
            idempotency_parameter(
                "Retrying with the same key and body returns the original response with the header "
                "`Idempotent-Replayed: true`."
            )
        ],
        request=serializers.TurnPush,
        responses={201: serializers.TurnPushed},
        errors=(409, 422),
    )
    def post(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Appends messages to the session as one turn: usually the model's response and the tool results that
        follow it. Secrets are redacted before anything is stored. The push may trigger a compaction, which
        the response reports in `fired`."""
        try:
            stored = with_session(call, session_id, partial(_push, call, session_id))
        except StaleTurn as error:
            raise Conflict("stale_turn", sentence(error), param="expected_turn") from None
        except KeyReused:
            raise key_reused() from None
        if isinstance(stored, Replayed):
            return json_response(stored.answer, status=201, headers={"Idempotent-Replayed": "true"})
        return json_response(stored, status=201)


def _push(call: ApiCall, session_id: str, route: Route) -> bytes | Replayed | None:
    """Push the turn in the request, and return the JSON response; None if there is no session."""
    principal = call.principal
    target = Target(key_id=principal.key_id, project_id=principal.project_id, session_id=route.id)
    push = push_read(call.raw, call.body, headers=call.request.META, principal=principal, format=route.format)
    try:
        stored = turn_push(target, _with_kept_preamble(push, call.body, route.id))
    except SessionGone:
        return None
    if route.format is None:
        route_refresh(route, project_id=principal.project_id, name=session_id)
    if principal.upkeep:
        memory_update_request(route.id)
    return stored


def _with_kept_preamble(push: Push, body: Mapping[str, Any], session_id: UUID) -> Push:
    """Return the push with the session's tools if it replaces only the system prompt, and vice versa."""
    kept = [name for name in ("system", "tools") if body.get(name) is None]
    if push.preamble is None or not kept:
        return push
    return replace(push, preamble=preamble_complete(push.preamble, session_id=session_id, kept=kept[0]))


def push_read(
    raw: bytes,
    body: Mapping[str, Any],
    *,
    headers: Mapping[str, Any],
    principal: Principal,
    format: str | None,
) -> Push:
    """Parse the push in a request. Raises `InvalidRequest`.

    `body` is the parsed `raw`, `headers` are those of a WSGI request, and `format` is the dialect of the
    session, or None if it is unknown. Does not use a serializer, because this is the hot path.
    """
    if unknown := body.keys() - _FIELDS:
        raise unknown_field(min(unknown), _FIELDS)
    values = body.get("messages")
    if values is None:
        raise InvalidRequest("missing_field", "`messages` is required.", param="messages")
    if not isinstance(values, list) or not values:
        raise InvalidField("messages", "`messages` must be an array with at least one message.")
    redaction = principal.redaction
    elements = raw_elements(raw, "messages")
    messages, found = ingest_messages(elements, values, format=format, redaction=redaction)
    tools = body.get("tools")
    if tools is not None and not isinstance(tools, list):
        raise InvalidField("tools", "`tools` must be an array.")
    retry_key = idempotency_key(headers)
    if retry_key is not None:
        reject_secret(retry_key, "Idempotency-Key", redaction)
    return replace(
        call_read(with_response_fields(body, values), principal),
        messages=messages,
        redacted=found,
        preamble=ingest_preamble(body.get("system"), tools, redaction=redaction),
        expected_turn=_expected(body.get("expected_turn")),
        idempotency_key=retry_key,
        body_hash=hashlib.sha256(raw).digest() if retry_key is not None else None,
    )


def _expected(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_TOKENS:
        raise InvalidField("expected_turn", "`expected_turn` must be a non-negative integer.")
    return value


def key_reused() -> InvalidRequest:
    """Return the error for an idempotency key that was used with another body."""
    return InvalidRequest(
        "idempotency_mismatch",
        "This idempotency key was already used with a different body.",
        status=422,
        param="Idempotency-Key",
    )


def idempotency_key(headers: Mapping[str, Any]) -> str | None:
    """Return the value of `Idempotency-Key` in the headers of a WSGI request. Raises `InvalidRequest`."""
    key = headers.get("HTTP_IDEMPOTENCY_KEY")
    if key is None:
        return None
    if not 1 <= len(key) <= 200 or not key.isprintable():
        raise InvalidField("Idempotency-Key", "`Idempotency-Key` must have 1 to 200 printable characters.")
    return str(key)


def turn_json(row: Any, messages: list[Any]) -> dict[str, Any]:
    positions = {"first": row.first_position, "last": row.first_position + row.message_count - 1}
    return {
        "turn": row.index,
        "at": row.at,
        "source": row.source,
        "model": row.model,
        "positions": positions if row.message_count else None,
        "messages": messages,
        "prompt_estimate": row.prompt_estimate,
        "prompt_reported": row.prompt_reported,
        "prompt_served": row.prompt_served,
        "components": breakdown_unpack(row.component_tokens).tokens,
        "usage": usage_json(row),
        "output_reported": row.output_reported,
        "cost_microusd": row.cost_microusd,
        "billed": row.billed,
        "latency": latency_json(row),
        "output_spike": row.output_spike,
    }
