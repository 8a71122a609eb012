"""`sessions/{id}/reconcile/`: send a client's whole history, and get the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from django.http import HttpResponse

from compaction.dialects import get_dialect
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import InvalidField, InvalidRequest, sentence, unknown_field
from sessions.api.ingestion import check_preamble
from sessions.api.lookup import raise_key_or_session_error, with_session
from sessions.api.parameters import format_param, format_parameter, idempotency_parameter
from sessions.api.prompt import prompt_json
from sessions.api.reported_call import CALL_FIELDS, call_read, text_field
from sessions.api.schema import operation
from sessions.api.serializers import reconcile as serializers
from sessions.api.turns import idempotency_key, key_reused
from sessions.selectors.lookups import Route, route_forget
from sessions.selectors.prompts.provider_engine import prompt_provider_params
from sessions.selectors.prompts.state import prompt_state
from sessions.selectors.prompts.stored import messages_now
from sessions.services.memory.update_requests import memory_update_request
from sessions.services.prompts.served import prompt_record
from sessions.services.push.turns import KeyReused, SessionGone
from sessions.services.push.values import Target
from sessions.services.reconcile.append import Appended, history_append, history_remember
from sessions.services.reconcile.history import history_reconcile
from sessions.services.reconcile.values import (
    PREVIOUS_RESPONSE,
    Continued,
    InvalidHistory,
    Reconciled,
    Request,
    Sent,
    UnknownResponse,
)
from sessions.store.rawjson import BadJson, TooDeep

_FIELDS = CALL_FIELDS | {"system", "tools", "compacted", PREVIOUS_RESPONSE}


class Reconcile(Endpoint):
    checks_key_itself = ("POST",)

    @operation(
        "sessions_reconcile",
        "Reconcile a session",
        serializers.ReconciledPrompt,
        parameters=[
            format_parameter("Format of the prompt's messages. Defaults to the session's format."),
            idempotency_parameter("Retrying with the same key and body stores nothing."),
        ],
        request=serializers.HistorySent,
        errors=(422,),
    )
    def post(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Takes the client's whole message list, appends what is new as one turn and returns the prompt, like
        `GET …/prompt/`. Messages are compared by content, ignoring cache breakpoints and thinking. A history
        that continues an earlier point becomes a forked session, which later calls with that history find."""
        served_format = format_param(call)
        request = Request(
            body=call.raw,
            redaction=call.principal.redaction,
            read=partial(_read, call),
            idempotency_key=idempotency_key(call.request.META),
        )
        found = with_session(call, session_id, partial(_reconcile, call, request, session_id))
        reconciled, state, messages = found.reconciled, found.state, found.messages
        if call.principal.upkeep and reconciled.turn is not None:
            memory_update_request(reconciled.session_id)
        served_format = get_dialect(served_format or state.format).name
        params = prompt_provider_params(state, format=served_format)
        turn = state.turn_count - 1
        fields = prompt_json(state, messages, turn=turn, format=served_format, params=params)
        return json_response(fields | {"reconciled": _reconciled_json(reconciled)})


def _reconcile(call: ApiCall, request: Request, session_id: str, route: Route) -> Appended | None:
    """Store the new part of the history in the request. Returns None if there is no session."""
    key_id, project_id = call.principal.key_id, call.principal.project_id
    target = Target(key_id=key_id, project_id=project_id, session_id=route.id)
    try:
        if (appended := _append(target, request)) is not None:
            return appended
        reconciled = history_reconcile(target, replace(request, continued=_continued(call)))
    except SessionGone:
        return None
    except InvalidHistory as error:
        raise _invalid(error) from None
    except KeyReused:
        raise key_reused() from None
    except UnknownResponse:
        raise InvalidField(PREVIOUS_RESPONSE, "The session has no response with this id.") from None
    except TooDeep as error:
        raise InvalidRequest("too_deep", sentence(error)) from None
    except BadJson as error:
        raise InvalidRequest("bad_json", sentence(error)) from None
    finally:
        if route.format is None:
            route_forget(project_id=project_id, name=session_id)
    return _with_prompt(call, session_id, reconciled)


def _append(target: Target, request: Request) -> Appended | None:
    """Store the history if it only appends, or return None if `history_reconcile` has to."""
    try:
        return history_append(target, request)
    except (InvalidRequest, InvalidHistory, BadJson):
        return None  # reported after the API key and the session have been checked


def _with_prompt(call: ApiCall, session_id: str, reconciled: Reconciled) -> Appended:
    """Return the result with the prompt, which is recorded as served."""
    key_id, project_id = call.principal.key_id, call.principal.project_id
    while True:  # until no edit changes the prompt while it is read
        state = prompt_state(key_id=key_id, project_id=project_id, session_id=reconciled.session_id)
        messages = messages_now(state) if state is not None else None
        if state is None or messages is None:
            raise_key_or_session_error(call, session_id)
        if prompt_record(state):
            history_remember(reconciled, state)
            return Appended(reconciled=reconciled, state=state, messages=messages)


def _continued(call: ApiCall) -> Continued | None:
    """Return the response that the messages follow, or None if they are the whole history.

    Raises `InvalidRequest`.
    """
    if PREVIOUS_RESPONSE.encode() not in call.raw:
        return None
    id = text_field(call.body, PREVIOUS_RESPONSE)
    return Continued(response_id=id, must_be_stored=True) if id else None


def _invalid(error: InvalidHistory) -> InvalidRequest:
    if error.index is None:
        return InvalidField("messages", str(error))
    return InvalidRequest("invalid_message", str(error), param=f"messages[{error.index}]")


def _read(call: ApiCall, fields: Mapping[str, Any]) -> Sent:
    """Parse all fields except the messages. Raises `InvalidRequest`."""
    if unknown := fields.keys() - _FIELDS:
        raise unknown_field(min(unknown), _FIELDS | {"messages"})
    check_preamble(fields.get("system"), fields.get("tools"))
    compacted = fields.get("compacted", False)
    if not isinstance(compacted, bool):
        raise InvalidField("compacted", "`compacted` must be a boolean.")
    return Sent(push=call_read(fields, call.principal), is_compacted=compacted)


def _reconciled_json(reconciled: Reconciled) -> dict[str, Any]:
    return {
        "session": reconciled.session_id,
        "status": reconciled.status,
        "first_new": reconciled.first,
        "turn": reconciled.turn,
        "redacted": [{"kind": found.kind, "count": found.count} for found in reconciled.redacted],
    }
