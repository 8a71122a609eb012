"""Webhooks."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

#: The events that a webhook can receive. It also receives `test` when it is tested.
WebhookEvent = Literal["compaction.started", "compaction.finished", "tool_output.spike", "budget.reached"]
WebhookFormat = Literal["json", "slack"]


class Delivery(TypedDict):
    """An event sent to a webhook. `status` is that of the last response, or None."""

    id: str
    event: str
    state: Literal["pending", "sent", "failed"]
    attempts: int
    status: int | None
    error: str
    created_at: str


class Webhook(TypedDict):
    """A webhook. `secret` is only set after its creation, and `deliveries` has the 20 most recent."""

    id: str
    url: str
    events: list[WebhookEvent]
    format: WebhookFormat
    active: bool
    created_at: str
    secret: NotRequired[str]
    deliveries: NotRequired[list[Delivery]]
