"""Store reports: a call becomes a turn, unless another source has recorded it.

A call without content becomes a turn with usage and without messages. Content is reconciled with the session,
so a history that each call repeats is stored once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC

from django.db import transaction

import pricing
from pricing.custom import custom_cost
from sessions.models import AgentSession, ToolRun, Turn
from sessions.services.calls.append import ReportedCall, call_append
from sessions.services.calls.match import family_of, turn_with_usage, turns_by_id
from sessions.services.calls.values import CallIdentity
from sessions.services.telemetry.content import NotStorable, call_reconcile, session_continued
from sessions.services.telemetry.sessions import line_locked, session_locked, title_set
from sessions.services.telemetry.values import Destination, Stored
from telemetry.values import CompactionReport, ModelCall, PromptReport, Report, ToolRunReport


def reports_store(destination: Destination, reports: Iterable[Report]) -> Stored:
    """Store reports, which are in order of time. Reports that are stored already change nothing."""
    stored = Stored()
    by_session: dict[str, list[Report]] = {}
    for report in reports:
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

    @transaction.atomic
    def store(self) -> None:
        calls = [report for report in self._reports if isinstance(report, ModelCall)]
        model = calls[0].model if calls else ""
        content = next((call.content for call in calls if call.content is not None), None)
        origin = self._reports[0].origin
        found = session_continued(self._destination, content) if content and not origin.is_named else None
        self._root = session_locked(self._destination, origin, model=model, found=found)
        self._known = self._recorded(calls)
        for report in self._reports:
            match report:
                case ModelCall():
                    self._store_call(report)
                case CompactionReport():
                    self._store_compaction(report)
                case PromptReport():
                    title_set(self._root, self._destination, report.text)
        self._store_tool_runs([report for report in self._reports if isinstance(report, ToolRunReport)])

    def _recorded(self, calls: Sequence[ModelCall]) -> set[str]:
        """Return the request ids and response ids of the calls that have a turn."""
        if not calls:
            return set()
        rows = turns_by_id(project_id=self._destination.project_id, calls=map(_identity, calls))
        pairs = rows.values_list("request_id", "response_id")
        return {id for pair in pairs for id in pair if id}

    def _store_call(self, call: ModelCall) -> None:
        if call.id in self._known or (call.response_id and call.response_id in self._known):
            return
        self._known |= {call.id, call.response_id} - {""}
        if self._is_recorded(call):
            return
        if call.content is None:
            session = line_locked(self._root, call.origin, model=call.model)
            call_append(session, _reported(call, self._destination))
            return
        try:
            self._stored.sessions.add(call_reconcile(self._root, call, self._destination))
        except NotStorable as error:
            self._stored.reject(str(error))
        self._root.refresh_from_db()

    def _is_recorded(self, call: ModelCall) -> bool:
        """Return whether a turn that has no id yet has the usage of the call, and give it the id."""
        family = family_of(self._root)
        if not AgentSession.objects.filter(pk__in=family, message_count__gt=0).exists():
            return False
        found = turn_with_usage(_identity(call), family=family, with_messages=True)
        if found is None:
            return False
        session_id, index = found
        Turn.objects.filter(session_id=session_id, index=index).update(request_id=call.id)
        return True

    def _store_compaction(self, report: CompactionReport) -> None:
        """Mark a compaction before the next call. Sessions with messages show compactions by themselves."""
        if self._root.message_count:
            return
        marker: Mapping[str, object] = {"trigger": report.trigger, "tokens_before": report.tokens_before}
        if Turn.objects.filter(session=self._root, client_compaction=marker).exists():
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


def _identity(call: ModelCall) -> CallIdentity:
    return CallIdentity(at=call.at, usage=call.usage, request_id=call.id, response_id=call.response_id)


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
