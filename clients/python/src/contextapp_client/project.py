"""The calls about a project: imports of logs, shared facts and webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from contextapp_client import types
from contextapp_client.calls import Pages, call, pages
from contextapp_client.payloads import given
from contextapp_client.steps import Pause, Steps
from contextapp_client.transport import BaseTransport

#: Seconds before the first and, at most, before later requests for the state of an import.
_FIRST_POLL, _LAST_POLL = 0.25, 4.0


class ProjectCalls:
    """The calls about a project."""

    transport: BaseTransport

    @call
    def import_log(
        self, data: bytes, *, name: str, format: str | None = None, wait: bool = True
    ) -> Steps[types.Import]:
        """Import an uncompressed log of an agent. Importing it again adds only what is new.

        `name` is its file name; sessions whose log contains no id are named after it. With `wait`, return
        when the import has ended. Otherwise, pass its `id` to `import_get`. Requires the scope `read` too.
        """
        query = {"name": name, "format": format}
        found: types.Import = yield from self.transport.json(
            "POST", "imports", query=query, data=data, repeatable=True
        )
        pause = _FIRST_POLL
        while wait and found["state"] in ("pending", "running"):
            yield Pause(pause)
            pause = min(2 * pause, _LAST_POLL)
            found = yield from self.transport.json("GET", "imports", found["id"])
        return found

    @pages
    def imports(self) -> Pages[types.Import]:
        """Iterate over the imports, newest first, without their sessions."""
        return Pages(self.transport, ("imports",), {})

    @call
    def import_get(self, id: str) -> Steps[types.Import]:
        """Return the state and progress of an import."""
        return self.transport.json("GET", "imports", id)

    @call
    def import_cancel(self, id: str) -> Steps[types.Import]:
        """End an import. Sessions that were already imported are kept."""
        return self.transport.json("PATCH", "imports", id, body={"state": "cancelled"})

    @pages
    def facts(
        self, *, agent: str | None = None, state: Literal["proposed", "accepted", "rejected"] | None = None
    ) -> Pages[types.Fact]:
        """Iterate over the facts that sessions share, or have proposed to share."""
        return Pages(self.transport, ("memory", "facts"), {"agent": agent, "state": state})

    @call
    def fact_review(
        self,
        id: str,
        *,
        state: Literal["proposed", "accepted", "rejected"] | None = None,
        text: str | None = None,
        expires_at: datetime | None = None,
    ) -> Steps[types.Fact]:
        """Accept, reject, reword or extend a shared fact. Requires the scope `admin`."""
        body = given(state=state, text=text, expires_at=expires_at and expires_at.isoformat())
        return self.transport.json("PATCH", "memory", "facts", id, body=body, repeatable=True)

    @call
    def webhooks(self) -> Steps[list[types.Webhook]]:
        """Return the webhooks of the project. All calls about webhooks require the scope `admin`."""
        found = yield from self.transport.json("GET", "webhooks")
        webhooks: list[types.Webhook] = found["data"]
        return webhooks

    @call
    def webhook_create(
        self,
        url: str,
        *,
        events: Sequence[types.WebhookEvent] | None = None,
        format: types.WebhookFormat | None = None,
    ) -> Steps[types.Webhook]:
        """Create a webhook for some events, or for all. `secret` in the result is not shown again."""
        body = given(url=url, events=None if events is None else list(events), format=format)
        return self.transport.json("POST", "webhooks", body=body)

    @call
    def webhook_get(self, id: str) -> Steps[types.Webhook]:
        """Return a webhook with its 20 most recent deliveries."""
        return self.transport.json("GET", "webhooks", id)

    @call
    def webhook_change(
        self,
        id: str,
        *,
        url: str | None = None,
        events: Sequence[types.WebhookEvent] | None = None,
        format: types.WebhookFormat | None = None,
        active: bool | None = None,
    ) -> Steps[types.Webhook]:
        """Change a webhook, or disable it with `active=False`."""
        chosen = None if events is None else list(events)
        body = given(url=url, events=chosen, format=format, active=active)
        return self.transport.json("PATCH", "webhooks", id, body=body, repeatable=True)

    @call
    def webhook_test(self, id: str) -> Steps[types.Delivery]:
        """Send the event `test` to a webhook."""
        return self.transport.json("POST", "webhooks", id, "test")

    @call
    def webhook_delete(self, id: str) -> Steps[None]:
        """Delete a webhook."""
        yield from self.transport.call("DELETE", "webhooks", id)
