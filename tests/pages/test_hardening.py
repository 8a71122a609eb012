"""Every page rejects forged requests, third-party scripts and foreign hosts. The resolver provides all
URLs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponseBase
from django.test import Client
from django.urls import reverse

from sessions.models import AgentSession
from tests.pages.test_scoping import PAGES, address_of, ids  # noqa: F401  # a fixture

pytestmark = pytest.mark.django_db

#: Directives that must not allow more than the site itself.
OWN_ONLY = {"script-src": "'self'", "style-src": "'self'", "form-action": "'self'", "connect-src": "'self'"}
#: The status codes for viewers of pages that prepare a change, or whose content the session does not have.
SEEN = {
    "session_revert": {403}, "sessions_delete": {403}, "replay_advice": {403},
    "session_image": {404}, "shared_transcript": {404}, "invitation": {404},
}  # fmt: skip
NOTHING = ("default-src", "frame-ancestors", "base-uri")


def policy_of(response: HttpResponseBase) -> Mapping[str, str]:
    pairs = (item.strip().partition(" ") for item in response["Content-Security-Policy"].split(";"))
    return {name: values for name, _, values in pairs}


@pytest.mark.slow
def test_forged_posts_change_nothing(ids: dict[str, Any], owner: User, subtests: Any) -> None:  # noqa: F811
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    for route, pattern in PAGES:
        with subtests.test(route):
            response = client.post(address_of(pattern, ids), headers={"Origin": "https://evil.example"})
            assert response.status_code in {403, 405}
    assert AgentSession.objects.filter(pk=ids["id"]).exists()


@pytest.mark.slow
def test_viewers_see_every_page_without_third_party_scripts_unframed_and_uncached(
    ids: dict[str, Any],  # noqa: F811
    viewer_client: Client,
    subtests: Any,
) -> None:
    """This also checks that the URLs in the tests of access exist."""
    for route, pattern in PAGES:
        with subtests.test(route):
            response = viewer_client.get(address_of(pattern, ids))
            assert response.status_code in SEEN.get(str(pattern.name), {200, 302, 405})
            if response.status_code == 405:
                assert "<h1>No page at this address</h1>" in response.text
                assert "POST" in response["Allow"]
            directives = policy_of(response)
            # The transcript of a shared link has inline styles and no scripts.
            assert OWN_ONLY.items() <= directives.items() or "script-src" not in directives
            assert all(directives[name] == "'none'" for name in NOTHING)
            assert "unsafe-eval" not in str(directives)
            assert response["X-Content-Type-Options"] == "nosniff"
            assert response["X-Frame-Options"] == "DENY"
            assert response["Referrer-Policy"] in {"same-origin", "no-referrer"}
            assert "no-store" in response["Cache-Control"]


@pytest.mark.slow
def test_foreign_hosts_are_rejected(
    ids: dict[str, Any],  # noqa: F811
    owner_client: Client,
    subtests: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for route, pattern in PAGES:
        with subtests.test(route):
            response = owner_client.get(address_of(pattern, ids), headers={"Host": "evil.example"})
            assert response.status_code == 400
            assert "CONTEXTAPP_ALLOWED_HOSTS" in response.text
    lines = caplog.text.splitlines()
    assert len(lines) == len(caplog.records)
    assert all("evil.example" in line and " CONTEXTAPP_ALLOWED_HOSTS" in line for line in lines)


def test_a_login_does_not_redirect_to_another_site(member: User) -> None:
    for target in ("https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)"):
        client = Client()
        form = {"username": member.username, "password": "correct horse battery", "next": target}
        response = client.post("/login/", form)
        assert (response.status_code, response["Location"]) == (302, "/"), target


def test_a_form_that_is_too_large_is_rejected_with_its_limit(
    project, owner_client: Client, settings: Any
) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = settings.CONTEXTAPP_MAX_BODY_BYTES = 2_048
    response = owner_client.post(
        reverse("settings_redaction", args=[project.slug]),
        f"sample={'x' * 3_000}",
        "application/x-www-form-urlencoded",
    )
    assert response.status_code == 413
    assert "exceeds the limit of 2\xa0KB" in response.text
    assert "ALLOWED_HOSTS" not in response.text
