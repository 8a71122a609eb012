"""API keys: scopes, expiry, revocation and rate limits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import product

import pytest
from django.test import Client, override_settings
from django.utils import timezone

from accounts.models import ApiKey, AuditEvent, Project
from accounts.services.api_keys import api_key_create, api_key_revoke
from sessions.api import auth, ratelimit
from tests.api.client import Api, code
from tests.api.talk import PROMPT, TURNS, push, request

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def cold() -> Iterator[None]:
    """Clear the caches of keys and rates before each test."""
    auth._principals.clear()
    ratelimit._reservations.clear()
    yield
    auth._principals.clear()
    ratelimit._reservations.clear()


def key_of(project: Project, **fields: object) -> tuple[ApiKey, Api]:
    key, text = api_key_create(project=project, name="tests", **fields)
    return key, Api(text)


class TestKnowing:
    @pytest.mark.parametrize(
        "header",
        [
            "",
            "Bearer",
            "Bearer ",
            "Basic YTpi",
            "Bearer nonsense",
            "Bearer ctx_ab_cd",
            "Bearer \xff",
            "x" * 9_000,
        ],
    )
    def test_a_valid_key_is_required(self, project: Project, header: str) -> None:
        response = Client().get("/api/v1/sessions/", headers={"authorization": header})
        assert (response.status_code, code(response)) == (401, "not_authenticated")
        assert response.headers["WWW-Authenticate"] == "Bearer"

    @pytest.mark.parametrize("header", ["ctx_1a2b3c4d_0123", "Token ctx_1a2b3c4d_0123"])
    def test_a_key_without_its_scheme_is_not_reported_as_missing(self, project: Project, header: str) -> None:
        response = Client().get("/api/v1/sessions/", headers={"authorization": header})
        message = response.json()["error"]["message"]
        assert "not a bearer token" in message
        assert "`Authorization: Bearer ctx_…`" in message

    def test_the_key_of_a_provider_is_rejected_with_the_prefix_of_ours(self, project: Project) -> None:
        error = Api("sk-ant-api03-secret").get("sessions/").json()["error"]
        assert "begins with `ctx_`" in error["message"]
        assert "secret" not in error["message"]
        error = Api("ctx_1a2b3c4d").get("sessions/").json()["error"]
        assert error["message"] == "The API key is incomplete."

    def test_the_whole_key_is_compared(self, project: Project) -> None:
        _, text = api_key_create(project=project, name="tests")
        assert Api(text).get("sessions/").status_code == 200
        assert Api(text[:-1] + ("a" if text[-1] != "a" else "b")).get("sessions/").status_code == 401
        assert Api(text + "x").get("sessions/").status_code == 401

    def test_the_key_itself_is_not_stored(self, project: Project) -> None:
        key, text = api_key_create(project=project, name="tests")
        row = str(ApiKey.objects.filter(pk=key.pk).values().get())
        assert text.split("_", 2)[2] not in row

    def test_its_last_use_is_recorded(self, project: Project) -> None:
        key, api = key_of(project)
        assert key.last_used_at is None
        api.get("sessions/")
        key.refresh_from_db()
        assert key.last_used_at is not None
        assert timezone.now() - key.last_used_at < timedelta(minutes=1)


class TestScopes:
    calls = {
        "read": [("GET", "sessions/"), ("GET", PROMPT), ("GET", TURNS), ("GET", "sessions/s1/compactions/")],
        "push": [("POST", TURNS), ("POST", "sessions/s1/compact/"), ("POST", "sessions/")],
        "admin": [("DELETE", "sessions/s1/")],
    }

    @pytest.mark.parametrize(("has", "needs"), list(product(("read", "push", "admin"), repeat=2)))
    def test_a_call_needs_its_scope(self, api: Api, project: Project, has: str, needs: str) -> None:
        api.post("sessions/", {"id": "s1"})
        _, caller = key_of(project, scopes=[has])
        for method, address in self.calls[needs]:
            response = caller.call(method, address, {"messages": [request()]} if address == TURNS else None)
            assert (response.status_code == 403) == (has != needs), (method, address)

    def test_a_key_without_scopes_can_do_nothing(self, project: Project) -> None:
        _, caller = key_of(project, scopes=[])
        assert caller.get("sessions/").status_code == 403


class TestEnding:
    """Keys end immediately, even while the process caches them after a recent use."""

    def warm(self, project: Project) -> tuple[ApiKey, Api]:
        key, api = key_of(project)
        api.post("sessions/", {"id": "s1"})
        push(api, [request()])
        for address in (PROMPT, TURNS, "sessions/s1/"):
            assert api.get(address).status_code == 200
        return key, api

    def assert_dead(self, api: Api) -> None:
        answers = {
            "push": api.post(TURNS, {"messages": [request()]}),
            "replay": api.post(TURNS, {"messages": [request()]}, idempotency_key="k"),
            "fetch": api.get(PROMPT),
            "turns": api.get(TURNS),
            "show": api.get("sessions/s1/"),
            "list": api.get("sessions/"),
            "compact": api.post("sessions/s1/compact/"),
        }
        assert {name: response.status_code for name, response in answers.items()} == dict.fromkeys(
            answers, 401
        )

    def test_a_revocation_takes_effect_immediately(self, project: Project) -> None:
        key, api = self.warm(project)
        api_key_revoke(key=key)
        self.assert_dead(api)

    @pytest.mark.parametrize(("method", "address"), [("POST", TURNS), ("GET", PROMPT), ("GET", TURNS)])
    def test_a_revocation_applies_to_the_very_next_request(
        self, project: Project, method: str, address: str
    ) -> None:
        key, api = self.warm(project)
        api_key_revoke(key=key)
        response = api.call(method, address, {"messages": [request()]} if method == "POST" else None)
        assert (response.status_code, code(response)) == (401, "not_authenticated")

    def test_revoking_twice_is_audited_once(self, project: Project) -> None:
        key, _ = self.warm(project)
        for _ in range(2):
            api_key_revoke(key=key)
        assert AuditEvent.objects.filter(action="api_key.revoked").count() == 1

    def test_an_expired_key_is_rejected(self, project: Project) -> None:
        key, api = self.warm(project)
        ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(hours=1))
        self.assert_dead(api)

    def test_a_key_is_valid_until_it_expires(self, project: Project) -> None:
        _, api = key_of(project, expires_at=timezone.now() + timedelta(hours=1))
        assert api.get("sessions/").status_code == 200


class TestRates:
    def test_requests_over_the_limit_get_retry_after(self, project: Project) -> None:
        key, api = key_of(project)
        ApiKey.objects.filter(pk=key.pk).update(rate_limit=10)
        statuses = [api.get("sessions/").status_code for _ in range(25)]
        assert statuses.count(200) in range(10, 21)  # a new minute may start in between
        if statuses[-1] == 429:
            response = api.get("sessions/")
            assert code(response) == "rate_limited"
            assert 1 <= int(response.headers["Retry-After"]) <= 61

    def test_pushes_and_fetches_count_as_well(self, project: Project) -> None:
        key, api = key_of(project)
        api.post("sessions/", {"id": "s1"})
        ApiKey.objects.filter(pk=key.pk).update(rate_limit=5)
        auth._principals.clear()
        statuses = [api.get(PROMPT).status_code for _ in range(6)]
        statuses += [api.post(TURNS, {"messages": [request()]}).status_code for _ in range(6)]
        assert 429 in statuses

    def test_a_key_without_a_limit_has_the_default(self, project: Project) -> None:
        _, api = key_of(project)
        with override_settings(CONTEXTAPP_RATE_LIMIT=3):
            statuses = [api.get("sessions/").status_code for _ in range(8)]
        assert 429 in statuses

    def test_keys_have_separate_limits(self, project: Project) -> None:
        (_, one), (_, other) = key_of(project), key_of(project)
        ApiKey.objects.filter(project=project).update(rate_limit=2)
        assert 429 in [one.get("sessions/").status_code for _ in range(5)]
        assert other.get("sessions/").status_code == 200

    def test_requests_pass_while_the_broker_is_down(self, project: Project) -> None:
        key, api = key_of(project)
        ApiKey.objects.filter(pk=key.pk).update(rate_limit=2)
        ratelimit._valkey.cache_clear()
        try:
            with override_settings(CONTEXTAPP_VALKEY_URL="redis://127.0.0.1:1/0"):
                assert [api.get("sessions/").status_code for _ in range(4)] == [200] * 4
        finally:
            ratelimit._valkey.cache_clear()


@pytest.mark.parametrize(
    "address", ["/api/", "/api/v2/", "/api/v1/nothing/", "/api/v1/sessions/s1/compactions/x/"]
)
def test_an_unknown_url_returns_an_api_error(api: Api, address: str) -> None:
    response = api.get(address)
    assert (response.status_code, code(response)) == (404, "not_found")
