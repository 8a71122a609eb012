"""Logins are limited after failures, and users can change their password."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import LoginFailure
from accounts.services.login_failures import MAX_PER_NAME, WINDOW, failure_record, is_throttled

pytestmark = pytest.mark.django_db

RIGHT = "correct horse battery"


def log_in(name: str, password: str):
    return Client().post("/login/", {"username": name, "password": password})


def test_after_several_failures_the_right_password_is_refused_too(member):
    for _ in range(MAX_PER_NAME):
        assert log_in("marc", "wrong").status_code == 200
    refused = log_in("MARC", RIGHT)
    assert refused.status_code == 200
    assert b"Try again in 15 minutes" in refused.content


def test_old_failures_do_not_count(member):
    for _ in range(MAX_PER_NAME):
        failure_record(name="marc", address="127.0.0.1")
    LoginFailure.objects.update(at=timezone.now() - WINDOW - timedelta(seconds=1))
    assert log_in("marc", RIGHT).status_code == 302


def test_a_login_clears_the_failures(member):
    for _ in range(MAX_PER_NAME - 1):
        failure_record(name="marc", address="127.0.0.1")
    assert log_in("marc", RIGHT).status_code == 302
    assert not LoginFailure.objects.exists()


def test_one_name_and_one_address_do_not_lock_others_out():
    for _ in range(MAX_PER_NAME):
        failure_record(name="marc", address="192.0.2.1")
    assert is_throttled(name="Marc", address="192.0.2.1")
    assert not is_throttled(name="vera", address="192.0.2.1")
    assert not is_throttled(name="marc", address="192.0.2.2")


def test_the_client_address_comes_from_the_tls_proxy(member, settings):
    settings.BEHIND_TLS = True
    client = Client(headers={"X-Forwarded-For": "198.51.100.9, 192.0.2.7"})
    client.post("/login/", {"username": "marc", "password": "wrong"})
    assert LoginFailure.objects.get().address == "192.0.2.7"


def test_the_password_can_be_changed(member, member_client):
    new = "another long one 7"
    form = {"old_password": RIGHT, "new_password1": new, "new_password2": new}
    assert member_client.post("/password/", form).status_code == 302
    assert log_in("marc", new).status_code == 302


def test_htmx_is_sent_to_the_login_page_and_back(project):
    page = f"/p/{project.slug}/sessions/?q=pool"
    response = Client().get(
        f"/p/{project.slug}/sessions/",
        headers={"HX-Request": "true", "HX-Current-URL": f"http://testserver{page}"},
    )
    assert response.status_code == 204
    assert response.headers["HX-Redirect"] == f"/login/?next={quote(page)}"


def test_other_scripts_get_401(project):
    response = Client().get(f"/p/{project.slug}/sessions/", headers={"Sec-Fetch-Dest": "empty"})
    assert response.status_code == 401
