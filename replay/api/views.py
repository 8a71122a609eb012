"""`replays/`: simulate stored sessions with other policies and budgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, ClassVar

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter

from accounts.models import ApiKey, Scope
from compaction.policy import PRESETS, Policy, get_policy
from compaction.replay.prices import Prices
from replay.api import serializers as shapes
from replay.models import ReplayRun
from replay.selectors.price_tables import named_prices
from replay.selectors.results import (
    ResultRow,
    TargetResult,
    result_rows,
    runs_newest,
    sessions_newest,
    target_results,
)
from replay.selectors.run_settings import limits_of
from replay.services import runs
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import InvalidField, about
from sessions.api.ingestion import reject_secret
from sessions.api.lookup import row_or_404, session_or_404
from sessions.api.paging import id_cursor, limit_param, page_json, paging
from sessions.api.schema import operation
from sessions.models import AgentSession


class Replays(Endpoint):
    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.ADMIN}

    @operation(
        operation_id="replays_list",
        summary="List replays",
        parameters=paging(),
        responses={200: shapes.ReplayList},
    )
    def get(self, call: ApiCall) -> HttpResponse:
        """Returns replays without their results, newest first."""
        limit = limit_param(call)
        rows = runs_newest(project_id=call.principal.project_id, before=id_cursor(call), limit=limit + 1)
        return json_response(page_json(rows, limit, _run_json, lambda run: [str(run.pk)]))

    @operation(
        operation_id="replays_create",
        summary="Create a replay",
        request=shapes.ReplayCreate,
        responses={201: shapes.ReplayDetail},
    )
    def post(self, call: ApiCall) -> HttpResponse:
        """Simulates stored sessions with other policies and budgets. Workers run the replay in the
        background; poll `replays/{id}/` for its progress. `ratios` defaults to 1.00, 0.50 and 0.20 if
        `budgets` is not given either."""
        data = call.validated(shapes.ReplayCreate)
        reject_secret(data.get("policies", ()), "policies", call.principal.redaction)
        key = ApiKey.objects.select_related("project").get(pk=call.principal.key_id)
        try:
            run = runs.run_create(
                project=key.project,
                sessions=_sessions(call, data),
                policies=[Policy.from_json(policy) for policy in data.get("policies", ())]
                or [get_policy(name) for name in PRESETS],
                limits=limits_of(ratios=data.get("ratios", ()), budgets=data.get("budgets", ())),
                with_model=data.get("with_model", False),
                title=data.get("title", ""),
                actor=call.actor,
            )
        except runs.InvalidRun as error:
            raise InvalidField(error.field, about(error.field, error)) from None
        return json_response(_detail_json(run), status=201)


class ReplayView(Endpoint):
    scopes: ClassVar = {"GET": Scope.READ, "PATCH": Scope.ADMIN}

    @operation(
        operation_id="replays_get",
        summary="Retrieve a replay",
        parameters=[
            OpenApiParameter(
                "prices",
                str,
                description="A model, or prices per million tokens: `input=3,read=0.3,write=3.75,output=15`.",
            )
        ],
        responses={200: shapes.ReplayDetail},
    )
    def get(self, call: ApiCall, replay_id: str) -> HttpResponse:
        """Returns the progress of a replay and its results so far."""
        return json_response(_detail_json(_replay_or_404(call, replay_id), prices=_prices(call)))

    @operation(
        operation_id="replays_change",
        summary="Update a replay",
        request=shapes.ReplayChange,
        responses={200: shapes.ReplayDetail},
    )
    def patch(self, call: ApiCall, replay_id: str) -> HttpResponse:
        """Confirms, cancels or resumes a replay."""
        run = _replay_or_404(call, replay_id)
        wanted = call.validated(shapes.ReplayChange)["state"]
        try:
            _change(run, wanted)(run=run, actor=call.actor)
        except runs.WrongState as error:
            raise InvalidField("state", about("state", error)) from None
        return json_response(_detail_json(run))


class ReplaySession(Endpoint):
    scopes: ClassVar = {"GET": Scope.READ}

    @operation(
        operation_id="replays_session",
        summary="Retrieve a replay of one session",
        responses={200: shapes.ReplaySession},
    )
    def get(self, call: ApiCall, replay_id: str, session_id: str) -> HttpResponse:
        """Returns the results for one session, call by call."""
        run, session = _replay_or_404(call, replay_id), session_or_404(call, session_id)
        rows = {row.number: row for row in result_rows(run)}
        founds = target_results(run, session_id=session.pk)
        curves = [_curve_json(found, rows[found.setting]) for found in founds]
        return json_response({"session": session.pk, "data": curves})


def _change(run: ReplayRun, wanted: str) -> Callable[..., None]:
    if wanted == ReplayRun.State.CANCELLED:
        return runs.run_cancel
    return runs.run_confirm if run.state == ReplayRun.State.WAITING else runs.run_resume


def _sessions(call: ApiCall, data: dict[str, Any]) -> list[AgentSession]:
    if "sessions" in data:
        return [session_or_404(call, name) for name in dict.fromkeys(data["sessions"])]
    newest = data.get("newest", {})
    return sessions_newest(
        project_id=call.principal.project_id,
        limit=newest.get("count", 20),
        agent=newest.get("agent", ""),
        model=newest.get("model", ""),
    )


def _prices(call: ApiCall) -> Prices | None:
    text = call.query.get("prices")
    if not text:
        return None
    try:
        return named_prices(text)
    except ValueError as error:
        raise InvalidField("prices", about("prices", error)) from None


def _replay_or_404(call: ApiCall, name: str) -> ReplayRun:
    rows = ReplayRun.objects.select_related("project").filter(project=call.principal.project_id)
    return row_or_404(rows, name, kind="replay")


def _run_json(run: ReplayRun) -> dict[str, Any]:
    return {
        "id": run.pk,
        "title": run.title,
        "state": run.state,
        "sessions": run.sessions,
        "steps": run.steps,
        "done": run.done,
        "with_model": run.with_model,
        "estimate_microusd": run.estimate_microusd,
        "created_at": run.created_at,
        "finished_at": run.finished_at,
    }


def _detail_json(run: ReplayRun, *, prices: Prices | None = None) -> dict[str, Any]:
    return _run_json(run) | {"rows": [_row_json(row) for row in result_rows(run, prices=prices)]}


def _row_json(row: ResultRow) -> dict[str, Any]:
    figures = asdict(row.total)
    return {
        "policy": row.setting.policy.name,
        "budget": row.setting.limit.label,
        **{name: value for name, value in figures.items() if not name.startswith("cost")},
        "cost_microusd": row.total.cost,
        "cost_uncached_microusd": row.total.cost_uncached,
        "summaries_microusd": row.summaries,
        "on_front": row.on_front,
    }


def _curve_json(found: TargetResult, row: ResultRow) -> dict[str, Any]:
    result = found.result
    return {
        "policy": row.setting.policy.name,
        "budget": row.setting.limit.label,
        "budget_tokens": found.budget_tokens,
        "turns": result.series.turns,
        "prompts": result.series.prompts,
        "cached": result.series.cached,
        "lost": result.series.lost,
        "compacted": result.compacted,
        "first_lost": asdict(result.first_lost) if result.first_lost else None,
        "examples": [asdict(lost) for lost in result.examples],
    }
