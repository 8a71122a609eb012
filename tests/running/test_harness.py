"""The fixtures of the tests provide users, servers and a browser."""

import pytest
from django.conf import settings
from django.db import connection
from kombu import Connection

from tests.browsing import barriers, fits_in_width


def test_it_has_a_postgres_of_the_embedded_major_version(db):
    assert connection.pg_version // 10_000 >= 17


def test_it_has_a_broker(servers):
    with Connection(settings.CELERY_BROKER_URL) as broker:
        queue = broker.SimpleBuffer("harness")
        queue.put({"hello": 1})
        assert queue.get(timeout=5).payload == {"hello": 1}


def test_a_web_server_is_a_process(served_url, request):
    assert marks(request) & {"browser", "processes"} == {"processes"}


@pytest.mark.browser
def test_it_serves_the_product_on_the_test_database(page, owner):
    page.goto("/login/")
    page.fill("[name=username]", owner.username)
    page.fill("[name=password]", "correct horse battery")
    page.locator("[name=password]").press("Enter")
    page.wait_for_url(lambda url: "/login/" not in url)


def marks(request):
    return {mark.name for mark in request.node.iter_markers()}


def test_it_opens_a_page_as_a_user(page_as, owner, request):
    assert {"browser", "processes"} <= marks(request)
    window = page_as(owner)
    window.goto("/")
    assert "/login/" not in window.url


@pytest.mark.browser
def test_it_finds_accessibility_violations_overflow_and_script_errors(page, complaints):
    page.set_content("<html lang=en><title>t</title><main><h1>h</h1><p>words")
    assert (barriers(page), fits_in_width(page), complaints) == ([], True, [])
    page.set_content("<img src='data:,'><div style='width: 3000px'>words</div><script>throw 'oops'</script>")
    assert "image-alt" in [line.partition(":")[0] for line in barriers(page)]
    assert not fits_in_width(page)
    style = "<style>@media (prefers-color-scheme: dark) { .pale { color: #bbb } }</style>"
    rows = "<p>words" * 9 + "<p style='color: #bbb'>words" + "<p class=pale>words"
    page.set_content(f"<html lang=en><title>t</title>{style}<main><h1>h</h1>{rows}")
    found = [line.split(":")[:2] for line in barriers(page)]
    assert found == [["light", " color-contrast"], *[["dark", " color-contrast"]] * 2]
    assert complaints == ["oops"]
    complaints.clear()


@pytest.mark.parametrize("name", ["owner_client", "member_client", "viewer_client", "stranger_client"])
def test_its_users_are_logged_in(name, request):
    assert request.getfixturevalue(name).session["_auth_user_id"]
