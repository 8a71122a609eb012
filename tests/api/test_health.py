"""Health, readiness and metrics endpoints."""

from __future__ import annotations

import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from prometheus_client.mmap_dict import MmapedDict

from sessions.api.metrics import metrics_reserve
from tests.api.client import Api
from tests.api.talk import push, whole_turn


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="needs posix_fallocate")
def test_metrics_are_written_to_reserved_space(settings: Any, tmp_path: Path) -> None:
    settings.CONTEXTAPP_METRICS_FOLDER = str(tmp_path)
    metrics_reserve("counter", "histogram")
    for kind in ("counter", "histogram"):
        file = tmp_path / f"{kind}_{os.getpid()}.db"
        values = MmapedDict(str(file))  # type: ignore[no-untyped-call]
        values.write_value("requests", 3.0, 0.0)  # type: ignore[no-untyped-call]
        assert values.read_value("requests") == (3.0, 0.0)  # type: ignore[no-untyped-call]
        values.close()  # type: ignore[no-untyped-call]
        assert file.stat().st_blocks * 512 >= file.stat().st_size >= 1 << 17


class TestHealth:
    def test_alive_needs_neither_login_nor_database(self, client: Client) -> None:
        response = client.get("/healthz")
        assert (response.status_code, response.json()) == (200, {"status": "ok"})

    def test_ready_with_database_and_broker(self, db: None, client: Client) -> None:
        response = client.get("/readyz")
        assert (response.status_code, response.json()["status"]) == (200, "ok")
        assert response.json() == {"status": "ok", "database": "ok", "broker": "ok"}

    def test_not_ready_without_the_database(self, db: None, client: Client, monkeypatch: Any) -> None:
        monkeypatch.setitem(connection.settings_dict, "HOST", "/nowhere")
        response = client.get("/readyz")
        assert (response.status_code, response.json()["database"]) == (503, "unreachable")
        assert response.json()["broker"] == "ok"

    def test_not_ready_without_the_broker(self, db: None, client: Client, monkeypatch: Any) -> None:
        monkeypatch.setattr("celery.current_app.conf.broker_write_url", "redis://127.0.0.1:9/0")
        response = client.get("/readyz")
        assert (response.status_code, response.json()["broker"]) == (503, "unreachable")

    @pytest.mark.slow
    def test_not_ready_if_the_broker_accepts_connections_but_does_not_respond(
        self, db: None, client: Client, monkeypatch: Any
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
            monkeypatch.setattr("celery.current_app.conf.broker_write_url", address)
            with ThreadPoolExecutor(1) as pool:
                answer = pool.submit(client.get, "/readyz")
                try:
                    assert answer.result(timeout=20).json()["broker"] == "unreachable"
                finally:
                    silent.close()

    def test_writes_to_a_read_only_database_can_be_retried_later(self, api_key: str) -> None:
        api = Api(api_key)
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL transaction_read_only = on")
        response = api.post("sessions/", {"id": "s1"})
        assert (response.status_code, response.json()["error"]["code"]) == (503, "unavailable")

    @pytest.mark.django_db(transaction=True)
    def test_not_ready_while_a_migration_is_missing(self, client: Client) -> None:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE django_migrations SET app = 'x' WHERE app = 'accounts'")
        try:
            response = client.get("/readyz")
            assert (response.status_code, response.json()["database"]) == (503, "not migrated")
        finally:
            with connection.cursor() as cursor:
                cursor.execute("UPDATE django_migrations SET app = 'accounts' WHERE app = 'x'")

    @pytest.mark.parametrize("address", ["/healthz", "/readyz", "/metrics"])
    def test_only_safe_methods_are_allowed(self, client: Client, address: str) -> None:
        assert client.post(address).status_code == 405


class TestMetrics:
    def test_requests_are_counted_by_route_and_not_by_url(self, api: Api, client: Client) -> None:
        api.get("sessions/secret-name/")
        text = client.get("/metrics").content.decode()
        assert 'route="api/v1/sessions/<str:session_id>/",status="404"' in text
        assert "contextapp_http_request_seconds_bucket" in text
        assert "secret-name" not in text

    def test_unknown_methods_and_urls_create_no_series(self, db: None, client: Client) -> None:
        client.generic("BREW", "/coffee-7f3a/")
        text = client.get("/metrics").content.decode()
        assert 'method="other",route=""' in text
        assert "BREW" not in text
        assert "coffee" not in text

    @pytest.mark.slow
    @pytest.mark.django_db(transaction=True)
    def test_compactions_are_counted_by_trigger_and_state(self, api: Api, client: Client) -> None:
        api.post("sessions/", {"id": "s1"})
        api.post("sessions/s1/turns/", {"messages": [{"role": "user", "content": "hi"}]})
        result = api.post("sessions/s1/compact/", {}).json()
        assert (result["state"], result["trigger"]) == ("skipped", "user")
        text = client.get("/metrics").content.decode()
        assert 'contextapp_compactions_total{state="skipped",trigger="user"}' in text

    @pytest.mark.slow
    @pytest.mark.django_db(transaction=True)
    def test_the_steps_of_applied_compactions_are_counted_once(self, api: Api, client: Client) -> None:
        before = _steps(client)
        api.post("sessions/", {"id": "s1", "policy": {"soft": 0, "hard": 0, "tail_share": 0.01}})
        for number in range(6):
            push(api, whole_turn(number))
        record = api.post("sessions/s1/compact/", {}).json()["record"]
        after = _steps(client)
        assert record["strategies"]
        assert {step: after[step] - before.get(step, 0) for step in after} == dict.fromkeys(
            after, 0
        ) | dict.fromkeys(record["strategies"], 1)

    @pytest.mark.slow
    @pytest.mark.django_db(transaction=True)
    def test_the_steps_that_remove_messages_for_good_are_counted(self, api: Api, client: Client) -> None:
        before = _steps(client)
        policy = {"preset": "baseline"}
        api.post("sessions/", {"id": "s1", "policy": policy, "budget": {"input_tokens": 2_500}})
        fired = [push(api, whole_turn(number))["fired"] for number in range(8)]
        after = _steps(client)
        assert {step for step in after if after[step] > before.get(step, 0)} == {"drop_oldest"}
        assert after["drop_oldest"] - before.get("drop_oldest", 0) == sum(map(bool, fired)) > 0

    @pytest.mark.slow
    def test_without_a_token_only_local_requests_are_allowed(self, client: Client) -> None:
        for local in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
            assert client.get("/metrics", REMOTE_ADDR=local).status_code == 200
        assert client.get("/metrics", REMOTE_ADDR="10.0.0.7").status_code == 403
        assert client.get("/metrics", headers={"host": "other.example"}).status_code == 403
        assert client.get("/metrics", headers={"x-forwarded-for": "10.0.0.7"}).status_code == 403

    @pytest.mark.slow
    def test_with_a_token_requests_with_it_are_allowed(self, client: Client, settings: Any) -> None:
        settings.CONTEXTAPP_METRICS_TOKEN = "letmein"
        assert client.get("/metrics").status_code == 403
        sent = {"authorization": "Bearer letmein"}
        by_address = sent | {"host": "10.0.0.5:8000"}
        assert client.get("/metrics", headers=by_address, REMOTE_ADDR="10.0.0.7").status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_checks_may_address_a_container_by_its_address(client: Client, path: str) -> None:
    assert client.get(path, headers={"host": "10.0.0.5:8000"}).json()["status"] in {"ok", "unavailable"}


def _steps(client: Client) -> dict[str, float]:
    """Return the compactions by the steps that they needed."""
    text = client.get("/metrics").content.decode()
    found = re.findall(r'^contextapp_compaction_steps_total\{step="(\w+)"\} (\S+)$', text, re.MULTILINE)
    return {step: float(count) for step, count in found}
