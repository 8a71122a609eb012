"""`memory/settings/`, and asking upkeep to read a session."""

from __future__ import annotations

from django.http import HttpResponse

from accounts.models import Project, Scope
from accounts.services import project_update
from compaction.errors import WorkingMemoryError
from sessions.api import serializers
from sessions.api.endpoint import Call, Endpoint, answer
from sessions.api.errors import InvalidRequest
from sessions.api.schema import described, errors
from sessions.api.sessions import found_or_404
from sessions.dispatch import observe_dispatch
from sessions.selectors.memory import schema_of


class MemorySettings(Endpoint):
    @described(
        operation_id="memory_settings_get",
        summary="Show whether upkeep is on, and the project's own fields",
        responses={200: serializers.MemorySettings, **errors()},
    )
    def get(self, call: Call) -> HttpResponse:
        return _answer(Project.objects.get(pk=call.principal.project_id))

    @described(
        operation_id="memory_settings_change",
        summary="Turn upkeep on or off, set the project's own fields",
        request=serializers.MemorySettings,
        responses={200: serializers.MemorySettings, **errors(400, 415)},
    )
    def patch(self, call: Call) -> HttpResponse:
        data = serializers.validated(serializers.MemorySettings, call.body)
        project = Project.objects.get(pk=call.principal.project_id)
        changes = {f"memory_{name}": value for name, value in data.items()}
        if "fields" in data:
            changes["memory_fields"] = [dict(field) for field in data["fields"]]
            try:
                schema_of(changes["memory_fields"])
            except WorkingMemoryError as error:
                raise InvalidRequest("invalid_field", str(error), param=error.field) from None
        project_update(project=project, changes=changes)
        return _answer(project)

    scopes = {"GET": Scope.READ, "PATCH": Scope.ADMIN}


class Upkeep(Endpoint):
    @described(
        operation_id="memory_upkeep",
        summary="Have upkeep read a session, also where the project has it off",
        request=None,
        responses={202: None, **errors()},
    )
    def post(self, call: Call, session_id: str) -> HttpResponse:
        observe_dispatch(found_or_404(call, session_id).pk)
        return HttpResponse(status=202)

    scopes = {"POST": Scope.PUSH}


def _answer(project: Project) -> HttpResponse:
    told = {
        "upkeep": project.memory_upkeep,
        "proposals": project.memory_proposals,
        "fields": project.memory_fields,
    }
    return answer(told)
