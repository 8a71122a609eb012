"""`sessions/{id}/prompt/`: the prompt that fits the budget."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter

from sessions.api import serializers
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import NotFound
from sessions.api.lookup import raise_key_or_session_error
from sessions.api.parameters import choice_param, format_param, format_parameter, int_param
from sessions.api.schema import error_responses, operation
from sessions.selectors.lookups import with_session_route
from sessions.selectors.memory import memory_latest, memory_notes
from sessions.selectors.prompts import messages_now, prompt_at, prompt_json, prompt_state


class Prompt(Endpoint):
    checks_key_itself = ("GET",)

    @operation(
        operation_id="prompt_get",
        summary="Fetch the prompt: valid, within the budget, ready for the provider's client",
        parameters=[
            format_parameter("default: the format of the session"),
            OpenApiParameter("at_turn", int, description="the prompt as it was after this turn"),
            OpenApiParameter("memory", str, enum=["latest"], description="working memory as it is now"),
            OpenApiParameter("manifest", str, enum=["0", "1"], description="1: where each message is from"),
            OpenApiParameter("If-None-Match", str, OpenApiParameter.HEADER),
        ],
        responses={200: serializers.Prompt, 304: None, **error_responses(400)},
    )
    def get(self, call: ApiCall, session_id: str) -> HttpResponse:
        format = format_param(call)
        manifest = choice_param(call, "manifest", ["0", "1"]) == "1"
        with_memory = choice_param(call, "memory", ["latest"]) is not None
        at_turn = int_param(call, "at_turn", default=-1)
        key_id, project_id = call.principal.key_id, call.principal.project_id
        state = with_session_route(
            project_id=project_id,
            name=session_id,
            use=lambda route: prompt_state(key_id=key_id, project_id=project_id, session_id=route.id),
        )
        if state is None:
            raise_key_or_session_error(call, session_id)
        memory = memory_latest(session_id=state.id) if with_memory else None
        variant = [state.etag, format or state.format, f"{at_turn}", f"{int(manifest)}"]
        etag = f'"{"-".join([*variant, str(memory.number if memory else 0)])}"'
        if _etag_matches(call.request.META.get("HTTP_IF_NONE_MATCH", ""), etag):
            return HttpResponse(status=304, headers={"ETag": etag})
        turn = state.turn_count - 1
        if 0 <= at_turn < turn:
            past = prompt_at(state, turn=at_turn)
            if past is None:
                raise NotFound("not_found", f"there is no turn {at_turn}", param="at_turn")
            (state, messages), turn = past, at_turn
        elif at_turn > turn:
            raise NotFound("not_found", f"there is no turn {at_turn}", param="at_turn")
        else:
            messages = messages_now(state)
        if memory is not None:
            messages = messages.with_memory(memory_notes(memory).render(), memory.tokens, state.format)
            state = replace(state, shown=state.shown.set(memory=memory.tokens))
        body = prompt_json(state, messages, format=format or state.format, manifest=manifest, turn=turn)
        return json_response(body, headers={"ETag": etag})


def _etag_matches(header: str, etag: str) -> bool:
    """Return whether `If-None-Match` contains the tag, which a compressing proxy may have made weak."""
    return etag in header or header.strip() == "*"
