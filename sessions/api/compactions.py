"""`sessions/{id}/compact/` and `compactions/`: run, list and revert compactions, and edit their recaps."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, StreamingHttpResponse

from compaction.edits import Edit as EditValue
from compaction.on_demand import OnDemandSummary
from compaction.planning.pipeline import Plan
from compaction.policy import Policy
from compaction.provider_summary import replacement_text
from redaction import redact
from sessions.api.endpoint import JSON_LINES, ApiCall, Endpoint, json_response
from sessions.api.errors import Conflict, InvalidField, InvalidRequest, NotFound, sentence
from sessions.api.ingestion import reject_secret
from sessions.api.lookup import session_or_404
from sessions.api.paging import limit_param, number_cursor, page_json, paging
from sessions.api.schema import operation
from sessions.api.serializers import compactions as serializers
from sessions.api.serializers.fields import MAX_TOKENS
from sessions.models import AgentSession, Compaction, Edit
from sessions.selectors.compactions.records import compaction_json, compactions_jsonl
from sessions.selectors.convert import edit_values
from sessions.selectors.token_budgets import policy_of
from sessions.services.compactions.lifecycle import CompactionInProgress
from sessions.services.compactions.on_demand import NotReplaceable, SummaryRequested, summary_record
from sessions.services.compactions.planning import PlanningFailed, preview_plan
from sessions.services.compactions.recap_edit import EmptyRecap, NotEditable, RecapTooLarge, recap_edit
from sessions.services.compactions.revert import NotRevertible, compaction_revert
from sessions.services.compactions.triggers import compaction_request


class Compact(Endpoint):
    @operation(
        "compact",
        "Compact a session",
        request=serializers.CompactRequest,
        responses={200: serializers.CompactionDetail, 202: serializers.CompactionDetail},
        errors=(409,),
    )
    def post(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Compacts the session now, regardless of its size. The state is `skipped` if nothing can be
        shortened, and `failed` if no plan could be computed. If a summarizer model is configured, a worker
        runs the compaction: the response is 202 with the pending record; poll `compactions/{number}/` for
        the result. Otherwise the compaction is complete when the call returns 200. With `preview`, returns
        what a compaction without a model would do and changes nothing."""
        data = call.validated(serializers.CompactRequest)
        session = session_or_404(call, session_id)
        reject_secret(data.get("policy", {}), "policy", call.principal.redaction)
        given = data.get("policy")
        policy = policy_of(given, model=session.model) if given is not None else None
        if data.get("preview"):
            return json_response(_preview(session, policy))
        try:
            compaction = compaction_request(
                session=session,
                reason="requested over the API",
                instructions=redact(data.get("instructions", ""), redaction=call.principal.redaction)[0],
                policy=policy,
            )
        except CompactionInProgress:
            raise _in_progress() from None
        accepted = compaction.state in Compaction.OPEN
        return json_response(detail_json(compaction), status=202 if accepted else 200)


def _preview(session: AgentSession, policy: Policy | None) -> dict[str, Any]:
    common = {
        "number": None,
        "trigger": "user",
        "engine": "own",
        "instructions": "",
        "turn": max(session.turn_count - 1, 0),
        "cost_microusd": 0,
        "created_at": None,
        "finished_at": None,
    }
    try:
        plan = preview_plan(session, policy=policy)
    except PlanningFailed as error:
        sizes: dict[str, Any] = {"tokens_before": None, "tokens_after": None, "record": {}}
        return {**common, "state": "failed", "reason": str(error), **sizes, "recap": None, "edits": []}
    return {
        **common,
        "state": "preview",
        "reason": plan.reason,
        "tokens_before": plan.record.tokens_before,
        "tokens_after": plan.record.tokens_after,
        "record": plan.record.to_json(),
        **plan_json(plan),
    }


def plan_json(plan: Plan) -> dict[str, Any]:
    """Return the recap and the edits of a plan."""
    return {
        "recap": plan.recap.render() if plan.recap is not None and plan.edits else None,
        "edits": [edit_json(edit) for edit in plan.edits],
    }


class Compactions(Endpoint):
    @operation(
        "compactions_list",
        "List the compactions of a session",
        serializers.CompactionPage,
        parameters=paging(),
    )
    def get(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Returns the records of a session's compactions, newest first, including those without effect."""
        session = session_or_404(call, session_id)
        limit = limit_param(call)
        rows = Compaction.objects.filter(session=session).order_by("-number")
        if (before := number_cursor(call)) is not None:
            rows = rows.filter(number__lt=before)
        return json_response(
            page_json(list(rows[: limit + 1]), limit, compaction_json, lambda row: [row.number])
        )

    @operation(
        "compactions_record",
        "Record a provider's summary",
        request=serializers.ProviderSummary,
        responses={201: serializers.CompactionDetail},
        errors=(409,),
    )
    def post(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Takes the response to the `summary_request` of a prompt (Anthropic's compaction on demand). The
        block replaces the summarized messages in later prompts. If the response contains no summary, the
        compaction is recorded as `failed`, and the prompt stays the same."""
        data = call.validated(serializers.ProviderSummary)
        session = session_or_404(call, session_id)
        for name in ("model", "stop_reason"):
            reject_secret(data.get(name) or "", name, call.principal.redaction)
        requested = SummaryRequested(session_id=session.pk, before=data["before"])
        try:
            compaction = summary_record(requested, OnDemandSummary.of(data))
        except NotReplaceable as error:
            raise Conflict("not_replaceable", sentence(error), param="before") from None
        return json_response(detail_json(compaction), status=201)


class CompactionsExport(Endpoint):
    @operation(
        "compactions_export",
        "Export the compactions of a session",
        responses={(200, JSON_LINES): serializers.ExportedCompaction},
    )
    def get(self, call: ApiCall, session_id: str) -> StreamingHttpResponse:
        """Streams all compactions of a session as JSON Lines, oldest first: one record per line, including
        compactions without effect. Edits and recaps are omitted."""
        session = session_or_404(call, session_id)
        return StreamingHttpResponse(compactions_jsonl(session), content_type=JSON_LINES)


class CompactionView(Endpoint):
    @operation("compactions_get", "Retrieve a compaction", serializers.CompactionDetail)
    def get(self, call: ApiCall, session_id: str, number: int) -> HttpResponse:
        """Returns one compaction with its edits and its recap."""
        session = session_or_404(call, session_id)
        return json_response(detail_json(compaction_or_404(session, number)))


class Revert(Endpoint):
    @operation("compactions_revert", "Revert a compaction", serializers.CompactionDetail, errors=(409,))
    def post(self, call: ApiCall, session_id: str, number: int) -> HttpResponse:
        """Removes the edits of an applied compaction from the prompt. Later compactions stay applied, and the
        record of the reverted one is kept with state `reverted`."""
        session = session_or_404(call, session_id)
        compaction_or_404(session, number)
        try:
            return json_response(
                detail_json(compaction_revert(session=session, number=number, actor=call.actor))
            )
        except NotRevertible as error:
            raise Conflict("not_revertible", sentence(error)) from None


class RecapEdit(Endpoint):
    @operation(
        "recap_edit",
        "Edit the recap of a compaction",
        serializers.CompactionDetail,
        request=serializers.RecapText,
        errors=(409, 422),
    )
    def post(self, call: ApiCall, session_id: str, number: int) -> HttpResponse:
        """Replaces the recap with your text. Each line becomes an item of the section that precedes it
        (`## Decisions`, `## Entities`, `## Facts` or `## Open items`), or else a fact. Returns the new
        compaction, with trigger `edit`, that applies the text. Revert it to restore the previous recap."""
        session = session_or_404(call, session_id)
        compaction_or_404(session, number)
        text = call.validated(serializers.RecapText)["text"]
        try:
            compaction = recap_edit(session=session, number=number, text=text, actor=call.actor)
        except CompactionInProgress:
            raise _in_progress() from None
        except NotEditable as error:
            raise Conflict("not_editable", sentence(error)) from None
        except EmptyRecap as error:
            raise InvalidField("text", sentence(error)) from None
        except RecapTooLarge as error:
            raise InvalidRequest("text_too_long", sentence(error), param="text", status=422) from None
        return json_response(detail_json(compaction))


def _in_progress() -> Conflict:
    text = "A compaction of this session is in progress. Try again when it has finished."
    return Conflict("compaction_open", text)


def compaction_or_404(session: AgentSession, number: int) -> Compaction:
    compaction = None
    if number <= MAX_TOKENS:
        compaction = Compaction.objects.filter(session=session, number=number).first()
    if compaction is None:
        raise NotFound(f"No compaction {number} in this session.", param="number")
    return compaction


def edit_json(edit: EditValue) -> dict[str, Any]:
    return {
        "strategy": edit.strategy,
        "op": edit.op,
        "positions": {"first": edit.position, "last": edit.end},
        "part": edit.part,
        "text": replacement_text(edit),
        "handle": edit.handle,
        "reason": edit.reason,
        "tokens_before": edit.tokens_before,
        "tokens_after": edit.tokens_after,
    }


def detail_json(row: Compaction) -> dict[str, Any]:
    edits = edit_values(Edit.objects.filter(compaction=row).order_by("ordinal"))
    return compaction_json(row) | {
        "recap": next((edit.text for edit in edits if edit.strategy == "recap" and edit.text), None),
        "edits": [edit_json(edit) for edit in edits],
    }
