"""`memory/settings/` and `sessions/{id}/memory/upkeep/`: automatic updates of working memory."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from accounts.models import Project, Scope
from accounts.services.projects import project_update
from compaction.errors import WorkingMemoryError
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import InvalidField, about
from sessions.api.ingestion import reject_secret
from sessions.api.lookup import session_or_404
from sessions.api.schema import operation
from sessions.api.serializers import memory as serializers
from sessions.selectors.memory.extraction import ExtractionState, extraction_state
from sessions.selectors.memory.revisions import schema_of
from sessions.selectors.summarizers import reader_missing
from sessions.services.dispatch import MEMORY_OBSERVE, task_dispatch
from sessions.services.memory.update_state import update_state_turn


class MemorySettings(Endpoint):
    @operation("memory_settings_get", "Retrieve memory settings", serializers.MemorySettings)
    def get(self, call: ApiCall) -> HttpResponse:
        """Returns how the project updates working memory automatically, and its custom memory fields."""
        return _settings_response(call.project)

    @operation(
        "memory_settings_change",
        "Update memory settings",
        serializers.MemorySettings,
        request=serializers.MemorySettings,
    )
    def patch(self, call: ApiCall) -> HttpResponse:
        """Changes only the given settings."""
        data = call.validated(serializers.MemorySettings)
        reject_secret(data.get("model", ""), "model", call.principal.redaction)
        changes = {f"memory_{name}": value for name, value in data.items()}
        reject_secret(data.get("fields", []), "fields", call.principal.redaction)
        if "fields" in data:
            changes["memory_fields"] = [dict(field) for field in data["fields"]]
            try:
                schema_of(changes["memory_fields"])
            except WorkingMemoryError as error:
                raise InvalidField(error.field, about(error.field, error)) from None
        project_update(project=call.project, changes=changes, actor=call.actor)
        return _settings_response(call.project)

    scopes = {"GET": Scope.READ, "PATCH": Scope.ADMIN}


class Upkeep(Endpoint):
    @operation("memory_upkeep_get", "Retrieve the progress of memory updates", serializers.MemoryUpkeep)
    def get(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Returns how far automatic updates and memory extraction by a model have processed the session."""
        session = session_or_404(call, session_id)
        project = session.project
        progress = {
            "upkeep": project.memory_upkeep,
            "turn": update_state_turn(session),
            "turns": session.turn_count,
            "reading": _reading_json(extraction_state(session=session, project=project)),
        }
        return json_response(progress)

    @operation("memory_upkeep", "Start a memory update", responses={202: None})
    def post(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Has a worker update the session's working memory from its new tool results, even if automatic
        updates are off for the project."""
        task_dispatch(MEMORY_OBSERVE, session_or_404(call, session_id).pk)
        return HttpResponse(status=202)


def _reading_json(state: ExtractionState) -> dict[str, Any]:
    return {
        "model": state.model,
        "missing": state.missing or None,
        "turn": state.turn,
        "read_at": state.read_at,
        "told": state.last_error or None,
        "next_try_at": state.retry_at,
        "readings": state.readings,
        "unpriced_readings": state.unpriced,
        "cost_microusd": state.cost_microusd,
    }


def _settings_response(project: Project) -> HttpResponse:
    settings = {
        "upkeep": project.memory_upkeep,
        "model": project.memory_model,
        "model_missing": (reader_missing(project) or None) if project.memory_model else None,
        "proposals": project.memory_proposals,
        "fields": project.memory_fields,
    }
    return json_response(settings)
