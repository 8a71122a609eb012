"""Webhook bodies as short messages for Slack and compatible chats, in Slack's `mrkdwn` format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.urls import reverse

from sessions.models import TEST_EVENT, WebhookEvent
from sessions.selectors.spending import ADJECTIVES

#: Maximum characters of a name in a message.
_NAME = 120


def slack_message(*, slug: str, event: str, payload: Mapping[str, Any]) -> dict[str, str]:
    """Return the message for an event of the project with this slug. `payload` is that of the JSON format."""
    return {"text": _WRITERS[event](slug, payload)}


def _started(slug: str, payload: Mapping[str, Any]) -> str:
    made = payload["compaction"]
    return f"Compaction {made['number']} of {_session(slug, payload)} started ({made['trigger']})."


def _finished(slug: str, payload: Mapping[str, Any]) -> str:
    made = payload["compaction"]
    text = f"Compaction {made['number']} of {_session(slug, payload)}: {made['state']}"
    if made["state"] == "done":
        return f"{text}, {made['tokens_before']:,} → {made['tokens_after']:,} tokens."
    return f"{text}. {_plain(made['reason'])}".rstrip()


def _spike(slug: str, payload: Mapping[str, Any]) -> str:
    spike = payload["output_spike"]
    return (
        f"The tool outputs of turn {payload['turn']} in {_session(slug, payload)} have {spike['tokens']:,} "
        f"tokens, far more than usual ({spike['mean']:,})."
    )


def _budget(slug: str, payload: Mapping[str, Any]) -> str:
    budget = payload["budget"]
    spent, limit = (budget[name] / 1_000_000 for name in ("spent_microusd", "limit_microusd"))
    kind = f"{ADJECTIVES[budget['period']]} budget"
    if budget["scope"] != "project":
        kind += f" for {budget['scope']} {_plain(budget['scope_value'])}"
    trends = _link(reverse("trends", args=[slug]), _plain(payload["project"]))
    return f"{trends}: {budget['share_percent']}% of the {kind} reached, ${spent:,.2f} of ${limit:,.2f}."


def _test(slug: str, payload: Mapping[str, Any]) -> str:
    settings_page = _link(reverse("settings_webhooks", args=[slug]), _plain(payload["project"]))
    return f"{settings_page}: this is a test event from contextapp."


_WRITERS: Mapping[str, Callable[[str, Mapping[str, Any]], str]] = {
    WebhookEvent.STARTED: _started,
    WebhookEvent.FINISHED: _finished,
    WebhookEvent.SPIKE: _spike,
    WebhookEvent.BUDGET: _budget,
    TEST_EVENT: _test,
}


def _session(slug: str, payload: Mapping[str, Any]) -> str:
    session = payload["session"]
    return _link(reverse("session", args=[slug, session["id"]]), _plain(session["external_id"]))


def _link(path: str, name: str) -> str:
    """Return a link if the address of the dashboard is configured, otherwise the name."""
    base = settings.CONTEXTAPP_PUBLIC_URL
    return f"<{base}{path}|{name}>" if base else name


def _plain(text: str) -> str:
    """Escape the characters with which Slack marks links and mentions."""
    short = text if len(text) <= _NAME else f"{text[:_NAME]}…"
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "¦")
