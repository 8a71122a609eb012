"""Logins are limited after failures, and users can change their password."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import LoginFailure
from accounts.services.login_failures import MAX_PER_ADDRESS, WINDOW, attempt_begin
from sessions.tasks import retention_run

pytestmark = pytest.mark.django_db

RIGHT = "correct horse battery"


def log_in(name: str, password: str):
    return Client().post("/login/", {"username": name, "password": password})


def failures(name: str, address: str, count: int) -> None:
    for _ in range(count):
        assert not attempt_begin(name=name, address=address)


def test_after_several_failures_the_right_password_is_refused_too_for_some_time(member):
    for _ in range(5):
        assert log_in("marc", "wrong").status_code == 200
    refused = log_in("MARC", RIGHT)
    assert refused.status_code == 200
    assert b"Too many failed attempts" in refused.content
    LoginFailure.objects.update(at=timezone.now() - timedelta(seconds=30))
    assert log_in("marc", RIGHT).status_code == 302


def test_the_time_to_wait_doubles_and_is_limited():
    now, waits = timezone.now(), []
    for _ in range(13):
        LoginFailure.objects.create(name="marc", address="192.0.2.1", at=now)
        waits.append(attempt_begin(name="marc", address="192.0.2.1"))
        LoginFailure.objects.filter(at__gt=now).delete()
    seconds = [0, 0, 0, 0, 30, 60, 120, 240, 480, 900, 900, 900, 900]
    assert [wait.total_seconds() for wait in waits] == pytest.approx(seconds, abs=10)


def test_old_failures_do_not_count(member):
    failures("marc", "127.0.0.1", 5)
    LoginFailure.objects.update(at=timezone.now() - WINDOW - timedelta(seconds=1))
    assert log_in("marc", RIGHT).status_code == 302


def test_a_login_clears_the_failures(member):
    failures("marc", "127.0.0.1", 4)
    assert log_in("marc", RIGHT).status_code == 302
    assert not LoginFailure.objects.exists()


def test_a_login_without_a_password_does_not_clear_the_failures(member):
    failures("marc", "127.0.0.1", 4)
    for blank in ("", "\0"):
        log_in("marc", blank)
    log_in("marc", "wrong")
    assert b"Too many failed attempts" in log_in("marc", RIGHT).content


def test_the_addresses_of_an_ipv6_network_are_one_client(member, settings):
    settings.BEHIND_TLS = True
    for number in range(5):
        client = Client(headers={"X-Forwarded-For": f"2001:db8:0:7::{number}"})
        client.post("/login/", {"username": "marc", "password": "wrong"})
    neighbor, other = (
        Client(headers={"X-Forwarded-For": address}) for address in ("2001:db8:0:7:ab::", "2001:db8:0:8::1")
    )
    form = {"username": "marc", "password": RIGHT}
    assert b"Too many failed attempts" in neighbor.post("/login/", form).content
    assert other.post("/login/", form).status_code == 302


@pytest.mark.slow
def test_one_name_and_one_address_do_not_lock_others_out():
    for number in range(20):
        failures(f"user{number}", "192.0.2.1", 5)
    assert attempt_begin(name="User1", address="192.0.2.1")
    assert not attempt_begin(name="vera", address="192.0.2.1")
    assert not attempt_begin(name="user1", address="192.0.2.2")


def test_an_address_is_refused_after_very_many_failures():
    now = timezone.now()
    LoginFailure.objects.bulk_create(
        LoginFailure(name=f"user{number}", address="192.0.2.1", at=now) for number in range(MAX_PER_ADDRESS)
    )
    assert attempt_begin(name="vera", address="192.0.2.1")
    assert not attempt_begin(name="vera", address="192.0.2.2")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_parallel_guesses_do_not_exceed_the_limit():
    def guess(_: int) -> bool:
        try:
            return not attempt_begin(name="marc", address="192.0.2.1")
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as pool:
        assert sum(pool.map(guess, range(40))) == 5


def test_the_client_address_comes_from_the_tls_proxy(member, settings):
    settings.BEHIND_TLS = True
    client = Client(headers={"X-Forwarded-For": "198.51.100.9, 192.0.2.7"})
    client.post("/login/", {"username": "marc", "password": "wrong"})
    assert LoginFailure.objects.get().address == "192.0.2.7"


def test_the_password_can_be_changed(member, member_client):
    new = "another long one 7"
    form = {"old_password": RIGHT, "new_password1": new, "new_password2": new}
    assert "Password changed." in member_client.post("/password/", form, follow=True).text
    assert log_in("marc", new).status_code == 302


@pytest.mark.slow
def test_guesses_of_the_old_password_are_limited(member, member_client):
    new = "another long one 7"
    form = {"old_password": RIGHT, "new_password1": new, "new_password2": new}
    for _ in range(5):
        assert member_client.post("/password/", form | {"old_password": "wrong"}).status_code == 200
    assert b"Too many failed attempts" in member_client.post("/password/", form).content
    assert log_in("marc", RIGHT).status_code == 302  # logins are counted separately
    LoginFailure.objects.update(at=timezone.now() - timedelta(seconds=30))
    assert member_client.post("/password/", form).status_code == 302
    assert log_in("marc", new).status_code == 302
    assert not LoginFailure.objects.exists()


def test_expired_logins_are_deleted_from_the_database(member_client):
    current = member_client.session.session_key
    expired = SessionStore()
    expired.set_expiry(timedelta(days=-1))
    expired.save()
    assert Session.objects.filter(pk=expired.session_key).exists()
    retention_run()
    assert [row.pk for row in Session.objects.all()] == [current]


def test_htmx_is_sent_to_the_login_page_and_back(project):
    page = f"/p/{project.slug}/sessions/?q=pool"
    response = Client().get(
        f"/p/{project.slug}/sessions/",
        headers={"HX-Request": "true", "HX-Current-URL": f"http://testserver{page}"},
    )
    assert response.status_code == 204
    assert response.headers["HX-Redirect"] == f"/login/?next={quote(page)}"


def test_a_posted_form_leads_back_to_its_page(project):
    page = reverse("settings_retention", args=[project.slug])
    target = reverse("settings_retention_off", args=[project.slug])
    response = Client().post(target, headers={"Referer": f"http://testserver{page}"})
    assert (response.status_code, response.headers["Location"]) == (302, f"/login/?next={quote(page)}")
    assert Client().post(target).headers["Location"] == "/login/?next=/"


def test_other_scripts_get_401(project):
    response = Client().get(f"/p/{project.slug}/sessions/", headers={"Sec-Fetch-Dest": "empty"})
    assert response.status_code == 401
