"""`sessions/{id}/prompt/`: fetch the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter

from compaction.capabilities import capabilities_of
from compaction.dialects import get_dialect
from compaction.on_demand import BETA, summarized_count
from compaction.provider_engine import ProviderParams
from compaction.provider_summary import ON_DEMAND
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import NotFound
from sessions.api.lookup import raise_key_or_session_error, with_session
from sessions.api.parameters import choice_param, format_param, format_parameter, int_param, int_parameter
from sessions.api.schema import operation
from sessions.api.serializers import turns as serializers
from sessions.selectors.memory.revisions import memory_latest, memory_notes
from sessions.selectors.prompts.provider_engine import prompt_provider_params
from sessions.selectors.prompts.state import PromptState, prompt_state
from sessions.selectors.prompts.stored import messages_now, prompt_at, unfit_reason
from sessions.selectors.token_budgets import prompt_size_json
from sessions.services.prompts.served import prompt_record
from sessions.store.bodies import content_hash, json_bytes
from sessions.store.prompt_bytes import PromptMessages, request_fields


class Prompt(Endpoint):
    checks_key_itself = ("GET",)

    @operation(
        "prompt_get",
        "Fetch the prompt",
        parameters=[
            format_parameter("Format of the returned messages. Defaults to the session's format."),
            int_parameter(
                "at_turn",
                "Return the prompt after this turn, including its messages. Defaults to the latest.",
            ),
            OpenApiParameter(
                "memory",
                str,
                enum=["latest"],
                description="Include the current working memory instead of the one from the last compaction. "
                "This invalidates the provider's prompt cache when the memory changes.",
            ),
            OpenApiParameter(
                "manifest", str, enum=["0", "1"], description="`1` to return the source of each message."
            ),
            OpenApiParameter(
                "If-None-Match",
                str,
                OpenApiParameter.HEADER,
                description="An earlier `ETag`. If the prompt is unchanged, the response is 304.",
            ),
        ],
        responses={200: serializers.Prompt, 304: None},
    )
    def get(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Returns the prompt of the next model call: valid for the provider, within the budget and ready to
        pass to the provider's SDK. If it cannot fit the budget, or has no messages, `fits` is false and
        `reason` explains why. If it ends with tool calls, `open_calls` has their ids: append the results."""
        format = format_param(call)
        manifest = choice_param(call, "manifest", ["0", "1"]) == "1"
        with_memory = choice_param(call, "memory", ["latest"]) is not None
        at_turn = int_param(call, "at_turn", default=-1)
        while True:  # until no edit changes the prompt while it is read
            state = _state(call, session_id)
            memory = memory_latest(session_id=state.id) if with_memory else None
            number = memory.number if memory else 0
            served_format = get_dialect(format or state.format).name
            params = prompt_provider_params(state, format=served_format) if at_turn < 0 else None
            etag = prompt_etag(state, served_format, manifest=manifest, memory=number, params=params)
            # What the prompt depends on identifies it before it is read. A past prompt is identified by its
            # content, which does not change with later turns.
            if at_turn < 0 and etag_matches(call.request.META, etag):
                return _not_modified(etag)
            found = _past(state, at_turn) or _current(call, session_id, state)
            if found is not None:
                break
        state, messages = found
        turn = state.turn_count - 1
        if memory is not None:
            messages = messages.with_memory(memory_notes(memory).render(), memory.tokens, state.format)
            state = replace(state, shown=state.shown.set(memory=memory.tokens))
        body = prompt_json(state, messages, format=served_format, manifest=manifest, turn=turn, params=params)
        content = json_bytes(body)
        if at_turn >= 0:
            etag = f'"{content_hash(content).hex()}"'
            if etag_matches(call.request.META, etag):
                return _not_modified(etag)
        # A placeholder is replaced when the lost content is restored, which does not change the tag.
        return json_response(content, headers={"ETag": etag} if messages.is_complete or at_turn >= 0 else {})


def _state(call: ApiCall, session_id: str) -> PromptState:
    key_id, project_id = call.principal.key_id, call.principal.project_id
    return with_session(
        call,
        session_id,
        lambda route: prompt_state(key_id=key_id, project_id=project_id, session_id=route.id),
    )


def _past(state: PromptState, turn: int) -> tuple[PromptState, PromptMessages] | None:
    """Return the prompt after a turn, or None for the current one (also -1). Raises `NotFound`."""
    last = state.turn_count - 1
    if turn < 0 or (turn == last and not state.has_changed_since_served):
        return None
    past = prompt_at(state, turn=turn) if turn <= last else None
    if past is None:
        raise NotFound(f"No turn {turn} in this session.", param="at_turn")
    return past


def _current(call: ApiCall, session_id: str, state: PromptState) -> tuple[PromptState, PromptMessages] | None:
    """Return the current prompt and record it as served, or return None if an edit has changed it."""
    messages = messages_now(state)
    if messages is None:
        raise_key_or_session_error(call, session_id)
    return (state, messages) if prompt_record(state) else None


def prompt_json(
    state: PromptState,
    messages: PromptMessages,
    *,
    turn: int,
    format: str,
    manifest: bool = False,
    params: ProviderParams | None = None,
    joined: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the prompt after `turn`, as a request in the dialect `format`.

    `params` are those of the provider's engine, if the provider compacts the session. `joined` is the result
    of `joined_fields`, if known.
    """
    fields = joined or request_fields(messages, state.request_parts(format))
    shown = fields["messages"]  # a list only if they had to be rendered
    is_empty, fits = shown == [], state.provider_tokens <= state.budget
    reason = None
    if not fits:
        reason = unfit_reason(
            session_id=state.id, turn=turn, tokens=state.provider_tokens, budget=state.budget
        )
    if fits and is_empty:
        fits, reason = False, "the session has no messages to send"
    fields |= {
        "format": format,
        "turn": turn,
        **prompt_size_json(
            shown=state.shown, context=state.context, budget=state.budget, calibration=state.calibration
        ),
        "fits": fits,
        "reason": reason,
        "open_calls": get_dialect(format).open_calls(
            shown if isinstance(shown, list) else _joined_end(state, messages)
        ),
        "compactions": state.compaction_count,
    }
    if params is not None:
        fields |= _provider_fields(params, messages, shown)
    elif format == state.format and _begins_with_block(messages):
        fields["betas"] = [BETA]
    if manifest:
        fields["manifest"] = messages.manifest
    return fields


def _joined_end(state: PromptState, messages: PromptMessages) -> list[dict[str, Any]]:
    """Return the response with open calls at the end of a joined prompt, or nothing.

    If the model does not accept open calls, notes have replaced their results.
    """
    may_end_open = state.continuation.open_calls and capabilities_of(state.model).prefill
    return messages.newest_response if may_end_open else []


def _provider_fields(
    params: ProviderParams, messages: PromptMessages, shown: orjson.Fragment | list[Any]
) -> dict[str, Any]:
    """Return the parameters of the provider's engine, and the summary to request if one is needed."""
    params = params if b'"thinking"' in messages.joined.data else params.without_thinking()
    params = params.following_block() if _begins_with_block(messages) else params
    fields: dict[str, Any] = {"context_management": params.context_management, "betas": params.betas}
    if params.on_demand is None or (isinstance(shown, list) and len(shown) != len(messages.manifest)):
        return fields
    roles = [entry["role"] for entry in messages.manifest]
    sizes = [entry["tokens"] for entry in messages.manifest]
    count = summarized_count(roles, sizes, keep=params.on_demand.keep)
    if count is not None:
        fields["summary_request"] = {
            "messages": count,
            "before": messages.manifest[count]["positions"]["first"],
            "compaction": params.on_demand.compaction,
            "betas": [BETA],
        }
    return fields


def _begins_with_block(messages: PromptMessages) -> bool:
    """Return whether the prompt begins with a summary that the provider wrote on demand."""
    return bool(messages.manifest) and messages.manifest[0]["rule"] == ON_DEMAND


def prompt_etag(
    state: PromptState,
    format: str,
    *,
    manifest: bool = False,
    memory: int = 0,
    params: ProviderParams | None = None,
) -> str:
    """Return the tag of the current prompt. `memory` is the revision of memory that it includes, or 0."""
    variant = [state.etag, format, f"{int(manifest)}", str(memory)]
    if params is not None:
        parameters = [params.context_management, params.on_demand is not None]
        variant.append(content_hash(json_bytes(parameters)).hex()[:12])
    return f'"{"-".join(variant)}"'


def etag_matches(headers: Mapping[str, Any], etag: str) -> bool:
    """Return whether `If-None-Match` contains the tag. Compressing proxies turn it into a weak one."""
    header = headers.get("HTTP_IF_NONE_MATCH", "")
    return etag in header or header.strip() == "*"


def _not_modified(etag: str) -> HttpResponse:
    return HttpResponse(status=304, headers={"ETag": etag})
