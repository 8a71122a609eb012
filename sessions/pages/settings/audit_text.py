"""Audit events in plain English, for example, “Created API key “ci””."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils.formats import date_format

from accounts.models import AuditEvent
from sessions.pages.figures import money

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00")

#: Sentences by action. They may use `target` and the fields of the event's detail.
_SENTENCES: Mapping[str, str] = {
    "project.created": "Created project {target}",
    "project.changed": "Changed project settings",
    "api_key.created": "Created API key “{name}”",
    "api_key.revoked": "Revoked API key ctx_{target}_…",
    "provider_key.set": "Set the provider key for {target}",
    "provider_key.removed": "Removed the provider key for {target}",
    "invitation.created": "Created an invitation with the role {role}",
    "invitation.revoked": "Revoked an invitation with the role {role}",
    "member.added": "Added {target} as {role}",
    "member.changed": "Changed the role of {target}",
    "member.removed": "Removed member {target}",
    "budget.set": "Set the budget per {target}",
    "budget.deleted": "Deleted the budget per {target}",
    "webhook.created": "Created webhook {target}",
    "webhook.changed": "Changed webhook {target}",
    "webhook.deleted": "Deleted webhook {target}",
    "webhook.tested": "Sent a test event to webhook {target}",
    "webhook.redelivered": "Redelivered an event to webhook {target}",
    "session.budget_changed": "Changed the prompt budget of session {target}",
    "session.policy_changed": "Changed the policy of session {target}",
    "session.labeled": "Changed the title, tags or notes of session {target}",
    "session.shared": "Created a link to session {target}",
    "session.unshared": "Revoked a link to session {target}",
    "comment.deleted": "Deleted a comment by {author} on turn {turn} of session {target}",
    "session.deleted": "Deleted session {target}",
    "retention.ran": "Deleted sessions that exceeded the retention period",
    "compaction.reverted": "Reverted compaction {compaction} of session {target}",
    "compaction.reapplied": "Applied compaction {compaction} of session {target} again",
    "recap.edited": "Edited the recap of session {target}",
    "sample.loaded": "Loaded the sample data",
    "sample.removed": "Removed the sample data",
    "policy.advised": "Adopted the recommended policy {target}",
    "replay.created": "Started a replay",
    "replay.confirmed": "Confirmed the estimated cost of a replay",
    "replay.cancelled": "Canceled a replay",
    "replay.resumed": "Resumed a replay",
    "memory.fact.proposed": "Moved a shared fact back to review",
    "memory.fact.accepted": "Accepted a shared fact",
    "memory.fact.rejected": "Rejected a shared fact",
    "memory.facts.pruned": "Deleted expired shared facts",
}

#: Labels of the targets that sentences leave out, by the first word of the action.
_TARGET_LABELS = {"api_key": "prefix", "memory": "fact ID", "replay": "replay ID"}

#: Labels of the fields whose own names are not plain words.
_LABELS: Mapping[str, str] = {
    "allows_sharing": "sharing by link",
    "custom_prices": "custom prices",
    "cache_read": "cache read",
    "cache_write": "cache write",
    "cost_microusd": "cost",
    "default_policy": "policy",
    "done": "completed results",
    "estimate_microusd": "estimate",
    "expires_at": "expires",
    "id": "session ID",
    "is_active": "enabled",
    "limit_microusd": "limit",
    "lost": "lost references",
    "memory_fields": "custom memory fields",
    "memory_model": "memory extraction model",
    "memory_proposals": "automatic proposals",
    "memory_upkeep": "automatic memory updates",
    "rate_limit": "requests per minute",
    "redaction_patterns": "redaction patterns",
    "replaces": "replaces compaction",
    "retention_begins_at": "deletion starts",
    "retention_days": "retention days",
    "session": "session ID",
    "summarizer_model": "summarizer model",
    "time_zone": "time zone",
    "used": "references",
    "with_model": "summarizer model used",
}

#: Fields whose numbers are micro-dollars.
_MONEY = {
    "cache_read",
    "cache_write",
    "cost_microusd",
    "estimate_microusd",
    "limit_microusd",
    "output",
    "uncached",
}


def describe_event(event: AuditEvent) -> str:
    """Return the event as a sentence. An action without one is shown by name, with its target."""
    sentence = _SENTENCES.get(event.action, "{action} {target}")
    values = {"name": event.target, "role": "member", "compaction": "", **event.detail}
    return sentence.format_map({**values, "action": event.action, "target": event.target}).strip()


def describe_details(event: AuditEvent) -> str:
    """Return the details that the sentence does not mention, as "label: value" pairs."""
    sentence = _SENTENCES.get(event.action, "")
    details = {name: value for name, value in event.detail.items() if f"{{{name}}}" not in sentence}
    target_label = _TARGET_LABELS.get(event.action.partition(".")[0])
    if target_label and event.target and "{target}" not in sentence:
        details = {target_label: event.target, **details}
    return "; ".join(_field_text(name, value) for name, value in details.items())


def _field_text(name: str, value: Any) -> str:
    if name in _MONEY:
        value = _to_dollars(value)
    return f"{_LABELS.get(name, name)}: {_value_text(value)}"


def _to_dollars(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _to_dollars(nested) for name, nested in value.items()}
    return money(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _value_text(value: Any) -> str:
    if isinstance(value, str) and _TIMESTAMP.fullmatch(value):
        return f"{date_format(datetime.fromisoformat(value), 'M j, Y, H:i')} UTC"
    if isinstance(value, Mapping) and set(value) == {"from", "to"}:
        return f"{_value_text(value['from'])} → {_value_text(value['to'])}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(_value_text, value)) or "none"
    if isinstance(value, Mapping) and value:
        return ", ".join(_field_text(name, nested) for name, nested in value.items())
    return str(value) if value not in ("", None, {}) else "none"
