"""`/healthz`, `/readyz` and `/metrics`: endpoints for operators. They need no API key."""

from __future__ import annotations

from functools import cache
from threading import Lock

import psycopg
from celery import current_app
from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError as BrokerError
from prometheus_client import CONTENT_TYPE_LATEST

from sessions.api.endpoint import json_response
from sessions.selectors.metrics_access import REFUSAL, may_read_metrics
from sessions.store.metric_files import exposition

#: Seconds to wait for the database and the broker.
_TIMEOUT = 2


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Liveness: report that the process responds. Restart it if it does not."""
    return json_response({"status": "ok"})


@login_not_required
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Readiness: report the state of each backing service, with status 503 if one is down."""
    services = _services()
    ready = all(state == "ok" for state in services.values())
    return json_response(
        {"status": "ok" if ready else "unavailable", **services}, status=200 if ready else 503
    )


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return metrics in the Prometheus text format. Requires the metrics token, if one is set."""
    if not _may_read_metrics(request):
        return HttpResponse(f"{REFUSAL}\n", status=403, content_type="text/plain")
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)


def _may_read_metrics(request: HttpRequest) -> bool:
    return may_read_metrics(
        authorization=request.META.get("HTTP_AUTHORIZATION", "").encode(),
        client=request.META.get("REMOTE_ADDR", ""),
        host=request.META.get("HTTP_HOST") or request.META.get("SERVER_NAME", ""),
        is_forwarded="HTTP_X_FORWARDED_FOR" in request.META or "HTTP_FORWARDED" in request.META,
    )


_checking = Lock()
_checked: dict[str, str] = {}


def _services() -> dict[str, str]:
    """Return the state of each backing service. While a thread checks them, others get the last result."""
    global _checked
    if _checking.acquire(blocking=not _checked):
        try:
            _checked = {"database": _database(), "broker": _broker()}
        finally:
            _checking.release()
    return _checked


def _database() -> str:
    """Check the database, bypassing the connection pool, which would wait too long if it is down."""
    parameters = connection.get_connection_params()
    parameters.pop("pool", None)
    parameters["connect_timeout"] = _TIMEOUT
    try:
        with psycopg.connect(**parameters) as database:
            rows = database.execute("SELECT app, name FROM django_migrations").fetchall()
    except psycopg.errors.UndefinedTable:
        return "not migrated"
    except psycopg.Error:
        return "unreachable"
    return "ok" if _migrations() <= {(app, name) for app, name in rows} else "not migrated"


@cache
def _migrations() -> frozenset[tuple[str, str]]:
    """Return all migrations of this version of the code."""
    return frozenset(MigrationLoader(None).disk_migrations)


def _broker() -> str:
    try:
        with current_app.connection_for_write(
            connect_timeout=_TIMEOUT,
            transport_options={"socket_connect_timeout": _TIMEOUT, "socket_timeout": _TIMEOUT},
        ) as broker:
            broker.ensure_connection(max_retries=1, interval_start=0.1, timeout=_TIMEOUT)
    except (BrokerError, OSError):
        return "unreachable"
    return "ok"
