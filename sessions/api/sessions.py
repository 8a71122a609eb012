"""`sessions/`: create, list, retrieve, change, export and delete sessions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpResponse, StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter

from compaction.sizes.breakdown import TokenBreakdown
from redaction import redact
from sessions.api.endpoint import JSON_LINES, ApiCall, Endpoint, json_response
from sessions.api.errors import Conflict, InvalidField
from sessions.api.ingestion import ingest_preamble, reject_secret
from sessions.api.lookup import session_or_404
from sessions.api.paging import cursor_param, invalid_cursor, limit_param, page_json, paging
from sessions.api.parameters import int_param, int_parameter, parse_time, time_param
from sessions.api.schema import operation
from sessions.api.serializers import sessions as serializers
from sessions.models import AgentSession
from sessions.selectors.health.grades import GRADES
from sessions.selectors.lists.api import sessions_page
from sessions.selectors.lists.filters import Cursor, SessionFilter
from sessions.selectors.lists.tree import names_with_ancestors
from sessions.selectors.lookups import as_uuid, session_find
from sessions.selectors.memory.facts import facts_offered_count
from sessions.selectors.token_budgets import (
    calibration_json,
    prompt_size_json,
    session_budget,
    session_calibration,
)
from sessions.selectors.transcripts.export import session_jsonl
from sessions.services.sessions.labels import session_label
from sessions.services.sessions.lifecycle import (
    NewSession,
    session_budget_change,
    session_create,
    session_delete,
    session_policy_change,
)


def session_json(session: AgentSession | Any) -> dict[str, Any]:
    """Return the JSON of a session, or of a row of `sessions_page`."""
    calibration = session_calibration(session)
    return {
        "id": session.id,
        "external_id": session.external_id,
        "title": session.title,
        "agent": session.agent,
        "model": session.model,
        "format": session.format,
        "origin": session.origin,
        "tags": session.tags,
        "metadata": session.metadata,
        "policy": session.policy,
        "parent": session.parent_id,
        "created_at": session.created_at,
        "last_active_at": session.last_active_at,
        "turns": session.turn_count,
        "messages": session.message_count,
        "compactions": session.compaction_count,
        "prompt": prompt_size_json(
            shown=TokenBreakdown(tokens=session.shown_components or session.context_components),
            context=TokenBreakdown(tokens=session.context_components),
            budget=session_budget(session),
            calibration=calibration,
        ),
        "context_window": session.context_window,
        "calibration": calibration_json(calibration),
        "last_prompt_tokens": session.last_prompt_tokens,
        "peak_prompt_tokens": session.peak_prompt_tokens,
        "billed_tokens": {
            "uncached": session.uncached_tokens,
            "cache_read": session.cache_read_tokens,
            "cache_write": session.cache_write_tokens,
            "output": session.output_tokens,
        },
        "cost_microusd": session.cost_microusd,
        "unpriced_turns": session.unpriced_turns,
    }


_FILTERS = [
    OpenApiParameter(
        "q", str, description="Words that must all occur in the title, external id, agent, model or tags."
    ),
    OpenApiParameter("agent", str, description="Exact agent name."),
    OpenApiParameter("model", str, description="Exact model name."),
    OpenApiParameter("tag", str, description="A tag that the session must have."),
    OpenApiParameter(
        "metadata", str, description="`key:value`: a top-level metadata key with this string value."
    ),
    OpenApiParameter("active_from", datetime, description="Only sessions active at or after this time."),
    OpenApiParameter("active_to", datetime, description="Only sessions active at or before this time."),
    int_parameter("min_peak_tokens", "Minimum peak prompt size in tokens."),
    OpenApiParameter("health", str, description="Comma-separated health grades, such as `C,D`."),
    *paging(),
]


class Sessions(Endpoint):
    @operation("sessions_list", "List sessions", serializers.SessionPage, parameters=_FILTERS)
    def get(self, call: ApiCall) -> HttpResponse:
        """Returns the project's sessions, most recently active first."""
        limit = limit_param(call)
        rows = sessions_page(
            project_id=call.principal.project_id, filters=_filter(call), after=_cursor(call), limit=limit + 1
        )
        return json_response(
            page_json(rows, limit, session_json, lambda row: (row.last_active_at.isoformat(), str(row.id)))
        )

    @operation(
        "sessions_create",
        "Create a session",
        request=serializers.SessionCreate,
        responses={201: serializers.SessionCreated, 200: serializers.SessionCreated},
        errors=(409,),
    )
    def post(self, call: ApiCall) -> HttpResponse:
        """Creates a session. With `if_exists` set to `return`, an existing session with the same `id` is
        returned unchanged with status 200."""
        key = call.principal.redaction
        data = call.validated(serializers.SessionCreate)
        for name in ("id", "model", "parent", "policy"):
            reject_secret(data.get(name, ""), name, key)
        redacted, _ = redact(
            {name: data[name] for name in ("title", "agent", "tags", "metadata") if name in data},
            redaction=key,
        )
        session, created = session_create(
            project_id=call.principal.project_id,
            new=NewSession(
                format=data.get("format"),
                external_id=data.get("id"),
                title=redacted.get("title", "")[:300],
                agent=redacted.get("agent", "")[:100],
                model=data.get("model", ""),
                tags=[tag[:100] for tag in redacted.get("tags", ())],
                metadata=redacted.get("metadata", {}),
                budget_tokens=data["budget"]["input_tokens"] if "budget" in data else None,
                policy=data.get("policy", {}),
                preamble=ingest_preamble(data.get("system"), data.get("tools"), redaction=key),
                created_by_id=call.principal.user_id,
                parent_id=_parent_id(call, data),
            ),
        )
        if not created and data["if_exists"] == "error":
            raise Conflict(
                "session_exists",
                f"Session {session.external_id!r} already exists. Set `if_exists` to `return` to use it.",
                param="id",
            )
        offers = facts_offered_count(session=session)
        return json_response(session_json(session) | {"offers": offers}, status=201 if created else 200)


class SessionView(Endpoint):
    @operation("sessions_get", "Retrieve a session", serializers.Session)
    def get(self, call: ApiCall, session_id: str) -> HttpResponse:
        """`session_id` is the session's `id` or its `external_id`."""
        return json_response(session_json(session_or_404(call, session_id)))

    @operation(
        "sessions_change",
        "Change a session",
        serializers.Session,
        request=serializers.SessionChange,
    )
    def patch(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Replaces the session's policy, budget, title or tags. A new policy or budget applies from the next
        compaction on; the current prompt, past prompts and a compaction in progress do not change. A title or
        tags set here are kept when the session's log is imported again."""
        data = call.validated(serializers.SessionChange)
        session = session_or_404(call, session_id)
        reject_secret(data.get("policy", {}), "policy", call.principal.redaction)
        if "policy" in data:
            session_policy_change(session=session, policy=data["policy"], actor=call.actor)
        if "budget" in data:
            budget = data["budget"]
            tokens = budget["input_tokens"] if budget is not None else None
            session_budget_change(session=session, tokens=tokens, actor=call.actor)
        if data.keys() & {"title", "tags"}:
            session_label(session=session, title=data.get("title"), tags=data.get("tags"), actor=call.actor)
        return json_response(session_json(session_or_404(call, session_id)))

    @operation("sessions_delete", "Delete a session", responses={204: None})
    def delete(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Permanently deletes the session and all content that no other session uses."""
        session = session_or_404(call, session_id)
        session_delete(session=session, actor=call.actor)
        return HttpResponse(status=204)


class SessionExport(Endpoint):
    @operation("sessions_export", "Export a session", responses={(200, JSON_LINES): serializers.ExportedLine})
    def get(self, call: ApiCall, session_id: str) -> StreamingHttpResponse:
        """Streams the session as JSON Lines: its properties, system prompts and tools, turns, messages and
        comments. `POST imports/` imports it into this or another project or instance. Compactions and the
        working memory are omitted."""
        session = session_or_404(call, session_id)
        return StreamingHttpResponse(session_jsonl(session), content_type=JSON_LINES)


def _parent_id(call: ApiCall, data: Mapping[str, Any]) -> UUID | None:
    """Return the id of the session named by `parent`, or None.

    Raises `InvalidRequest` if it does not exist, or if it is the session itself or one that it started.
    """
    if "parent" not in data:
        return None
    parent = session_find(project_id=call.principal.project_id, name=data["parent"])
    if parent is None:
        raise InvalidField("parent", f"No session with the id {data['parent']!r} in this project.")
    if data.get("id") in names_with_ancestors(session=parent):
        raise InvalidField("parent", "`parent` is the session itself, or one below it.")
    return parent.pk


def _words(call: ApiCall, name: str) -> str:
    text = call.query.get(name, "")
    if "\0" in text:
        raise InvalidField(name, f"`{name}` must not contain NUL characters.")
    return text


def _filter(call: ApiCall) -> SessionFilter:
    text, agent, model, tag = (_words(call, name) for name in ("q", "agent", "model", "tag"))
    return SessionFilter(
        text=text,
        agent=agent,
        model=model,
        tags=(tag,) if tag else (),
        metadata=_metadata(call.query.get("metadata")),
        active_from=time_param(call, "active_from"),
        active_to=time_param(call, "active_to"),
        minimum_peak=int_param(call, "min_peak_tokens", default=0) or None,
        grades=_grades(call),
        sub_agents=True,
    )


def _cursor(call: ApiCall) -> Cursor | None:
    """Return the last row of the previous page, or None without a cursor."""
    keys = cursor_param(call, str, str)
    if keys is None:
        return None
    at, id = parse_time(keys[0]), as_uuid(keys[1])
    if at is None or id is None:
        raise invalid_cursor()
    return Cursor(at=at, id=id)


def _grades(call: ApiCall) -> frozenset[str]:
    known = [grade for grade, _ in GRADES]
    names = call.query.get("health", "").split(",")
    grades = frozenset(name.strip().upper() for name in names if name.strip())
    if not grades <= set(known):
        raise InvalidField(
            "health", f"`health` must be a comma-separated list of grades: {', '.join(known)}."
        )
    return grades


def _metadata(text: str | None) -> dict[str, str] | None:
    if not text:
        return None
    key, separator, value = text.partition(":")
    if not separator or "\0" in text:
        raise InvalidField("metadata", "`metadata` must have the form `key:value`.")
    return {key: value}
