"""`/healthz` and `/metrics` of the gateway: endpoints for operators. They need no API key."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST

from gateway.http import Scope, Send, respond
from sessions.selectors.metrics_access import REFUSAL, may_read_metrics
from sessions.store.bodies import json_bytes
from sessions.store.metric_files import exposition


async def serve_status(scope: Scope, send: Send) -> None:
    """Respond to a request for one of these paths."""
    if scope["path"] == "/healthz":
        await respond(send, 200, b'{"status":"ok"}')
    elif _may_read_metrics(scope):
        await respond(send, 200, exposition(), type=CONTENT_TYPE_LATEST.encode())
    else:
        error = {"error": {"type": "permission_error", "message": REFUSAL}}
        await respond(send, 403, json_bytes(error))


def _may_read_metrics(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return may_read_metrics(
        authorization=headers.get(b"authorization", b""),
        client=(scope.get("client") or ("",))[0],
        host=headers.get(b"host", b"").decode("latin-1"),
        is_forwarded=b"x-forwarded-for" in headers or b"forwarded" in headers,
    )
