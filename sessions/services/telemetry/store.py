"""Store reports: a call becomes a turn, unless another source has recorded it.

A call without content becomes a turn with usage and without messages. Content is reconciled with the session,
so a history that each call repeats is stored once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC

from django.db import transaction
from django.db.models import F, Q

import pricing
from pricing.custom import custom_cost
from sessions.models import AgentSession, ToolRun, Turn
from sessions.selectors.lookups import session_find
from sessions.services.calls.match import family_of, has_usage, turn_with_usage, turns_by_id
from sessions.services.calls.store import ReportedCall, call_append, call_complete, call_correct
from sessions.services.telemetry.content import (
    NotStorable,
    call_reconcile,
    identity_of,
    request_in,
    session_continued,
)
from sessions.services.telemetry.redact_reports import report_redact
from sessions.services.telemetry.sessions import line_locked, session_locked, title_set
from sessions.services.telemetry.values import Destination, Stored
from telemetry.values import CompactionReport, ModelCall, PromptReport, Report, ToolRunReport


def reports_store(destination: Destination, reports: Iterable[Report]) -> Stored:
    """Store reports, which are in order of time. Reports that are stored already change nothing."""
    stored = Stored()
    by_session: dict[str, list[Report]] = {}
    for report in (report_redact(each, destination.redaction) for each in reports):
        by_session.setdefault(report.origin.session, []).append(report)
    for group in by_session.values():
        _SessionReports(destination, group, stored).store()
    return stored


class _SessionReports:
    """The reports about one session and its sub-agents, while they are stored."""

    def __init__(self, destination: Destination, reports: Sequence[Report], stored: Stored) -> None:
        self._destination = destination
        self._reports = reports
        self._stored = stored
        self._root: AgentSession
        self._known: set[str] = set()
        self._complete: set[str] = set()
        self._incomplete: dict[str, Turn] = {}

    @transaction.atomic
    def store(self) -> None:
        root = self._find()
        if root is None:
            return
        self._root = root
        # Again with the session locked: the gateway may have recorded a call in the meantime.
        self._recorded([report for report in self._reports if isinstance(report, ModelCall)])
        for report in self._reports:
            match report:
                case ModelCall():
                    self._store_call(report)
                case CompactionReport():
                    self._store_compaction(report)
                case PromptReport():
                    title_set(self._root, report.text)
        self._store_tool_runs([report for report in self._reports if isinstance(report, ToolRunReport)])

    def _find(self) -> AgentSession | None:
        """Return the main session of the reports, locked. Creates it if a call is new.

        Returns None for runs of tools in a trace without calls.
        """
        calls = [report for report in self._reports if isinstance(report, ModelCall)]
        origin, model = self._reports[0].origin, calls[0].model if calls else ""
        recorded = self._recorded(calls)
        found = session_find(project_id=self._destination.project_id, name=origin.session)
        if found is None and calls and all(self._is_known(call) for call in calls):
            found = recorded
        if found is None and not origin.is_named:
            content = next((call.content for call in calls if call.content is not None), None)
            found = session_continued(self._destination, content) if content is not None else None
            if found is None and not calls:
                return None
        return session_locked(self._destination, origin, model=model, found=found)

    def _recorded(self, calls: Sequence[ModelCall]) -> AgentSession | None:
        """Note which calls have a turn, and return the main session of the first one."""
        if not calls:
            return None
        rows = turns_by_id(project_id=self._destination.project_id, calls=[*map(identity_of, calls)])
        turns = list(rows.select_related("session__parent"))
        self._known = _ids(turns)
        self._complete = _ids(turn for turn in turns if turn.message_count)
        incomplete = [turn for turn in turns if turn.message_count and not _has_exact_usage(turn)]
        self._incomplete = {id: turn for turn in incomplete for id in _ids([turn])}
        sessions = [turn.session.parent or turn.session for turn in turns]
        return sessions[0] if sessions else None

    def _is_known(self, call: ModelCall) -> bool:
        """Return whether the call has a turn, with messages if the call has content.

        Some calls have two spans: one of the client library without content, and one of an instrumentation.
        """
        known = self._complete if call.content is not None else self._known
        return not known.isdisjoint(call.ids)

    def _store_call(self, call: ModelCall) -> None:
        if self._is_known(call):
            self._correct(self._incomplete.get(call.id) or self._incomplete.get(call.response_id), call)
            return
        is_new = self._known.isdisjoint(call.ids)
        self._known |= call.ids
        if is_new and self._is_recorded(call):
            self._complete |= call.ids
        elif call.content is None:
            self._append(call)
        else:
            self._reconcile(call, is_new=is_new)

    def _append(self, call: ModelCall) -> None:
        session = line_locked(self._root, call.origin, model=call.model)
        call_append(session, _reported(call, self._destination))

    def _reconcile(self, call: ModelCall, *, is_new: bool) -> None:
        try:
            reconciled = call_reconcile(self._root, call, self._destination)
        except NotStorable as error:
            self._stored.reject(str(error))
            if is_new:
                self._append(call)  # its usage
            return
        self._complete |= call.ids
        self._root.refresh_from_db()
        if not self._root.title:
            title_set(self._root, request_in(call, self._destination))
        if reconciled.turn is None:  # all messages were stored before, but not the call
            self._append(call)

    def _is_recorded(self, call: ModelCall) -> bool:
        """Return whether a stored turn has the usage of the call, and give it the id if it has none."""
        family = family_of(self._root)
        if not AgentSession.objects.filter(pk__in=family, message_count__gt=0).exists():
            return False
        found = turn_with_usage(identity_of(call), family=family, with_messages=True)
        if found is None:
            return False
        session_id, index = found
        rows = Turn.objects.filter(session_id=session_id, index=index)
        rows.filter(Q(request_id=None) | Q(request_id=F("response_id"))).update(request_id=call.id)
        self._correct(rows.filter(output_reported__isnull=False).first(), call)
        return True

    def _correct(self, turn: Turn | None, call: ModelCall) -> None:
        """Store the usage of a call that was pushed without it, or the output tokens that a log estimates."""
        if turn is None:
            return
        if turn.prompt_reported is None:
            self._complete_pushed(turn, call)
        elif has_usage(turn, identity_of(call)):
            call_correct(turn, call=_reported(call, self._destination))
        self._root.refresh_from_db()

    def _complete_pushed(self, turn: Turn, call: ModelCall) -> None:
        """Store the usage of a call that was pushed with its ids only."""
        session = AgentSession.objects.select_for_update().get(pk=turn.session_id)
        pushed = Turn.objects.filter(session=session, index=turn.index, prompt_reported=None).first()
        if pushed is not None:
            cost = _cost(call, self._destination)
            call_complete(pushed, usage=call.usage, cost_microusd=cost, model=call.model)

    def _store_compaction(self, report: CompactionReport) -> None:
        """Mark a compaction before the next call. Sessions with messages show compactions by themselves."""
        if self._root.message_count:
            return
        marker: Mapping[str, object] = {"trigger": report.trigger, "tokens_before": report.tokens_before}
        # The call that the mark was added to is later than the compaction.
        marked = Turn.objects.filter(session=self._root, client_compaction=marker, at__gte=report.at)
        if marked.exists():
            return
        call = ReportedCall(
            at=report.at,
            request_id=f"compaction:{report.at.isoformat()}",
            client_compaction=dict(marker),
        )
        call_append(self._root, call)

    def _store_tool_runs(self, runs: Sequence[ToolRunReport]) -> None:
        rows = (
            ToolRun(
                session=self._root,
                call_id=run.call_id,
                name=run.name,
                at=run.at,
                duration_ms=run.duration_ms,
                is_error=run.is_error,
            )
            for run in runs
        )
        ToolRun.objects.bulk_create(rows, ignore_conflicts=True)


def _has_exact_usage(turn: Turn) -> bool:
    return turn.prompt_reported is not None and turn.output_reported is None


def _ids(turns: Iterable[Turn]) -> set[str]:
    return {id for turn in turns for id in (turn.request_id, turn.response_id) if id}


def _reported(call: ModelCall, destination: Destination) -> ReportedCall:
    return ReportedCall(
        at=call.at,
        request_id=call.id,
        response_id=call.response_id or None,
        model=call.model,
        usage=call.usage,
        cost_microusd=_cost(call, destination),
        first_token_ms=call.first_token_ms,
        duration_ms=call.duration_ms,
    )


def _cost(call: ModelCall, destination: Destination) -> int | None:
    """Return the cost at the project's custom price, else as reported, else from the price table."""
    cost = custom_cost(destination.prices, call.model, call.usage, call.at.astimezone(UTC).date())
    if cost is None:
        cost = call.cost_microusd
    return pricing.price(call.model, call.usage, call.at).microusd if cost is None else cost
