"""Only members see the pages of a project. The resolver provides all URLs, so that none is missed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from compaction.memory.origins import Author
from compaction.policy import get_policy
from compaction.replay.setting import Limit
from replay.services.runs import run_create
from sessions.services.imports.jobs import import_job_create
from sessions.services.memory.revisions import Writer, memory_patch
from tests.pages.served import compacted_session
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

#: Pages outside of projects: status codes for an anonymous visitor and for a non-member.
WITHOUT_PROJECT = {
    "login": (200, 302),
    "shared_transcript": (404, 404),
    "logout": (302, 405),
    "home": (302, 302),
    "hints": (302, 405),
    "manual": (302, 200),
    "manual_page": (302, 200),
    "manual_search": (302, 200),
    "password_change": (302, 200),
    "invitation": (404, 404),
}
#: Personal changes, visible only to the user who makes them. Viewers may make them, too.
PERSONAL = {
    "session_star", "saved_view_create", "saved_view_delete", "trends_preset_create", "trends_preset_delete",
}  # fmt: skip
#: Changes of keys, which members may make, too.
OF_MEMBERS = {"settings_keys", "settings_key_revoke"}
#: URLs whose `id` is not the session's.
BY_OTHER_IDS = {"settings_key_revoke"}
#: URLs that are not pages; their access is tested elsewhere.
NOT_PAGES = ("api/", "mcp", "otel/", "healthz", "readyz", "metrics")


def addresses(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in resolver.url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern, route)
        else:
            yield route, pattern


PAGES = [(route, pattern) for route, pattern in addresses(get_resolver()) if not route.startswith(NOT_PAGES)]


@reused
def ids(project):
    """A value for every URL parameter; add one here for a new parameter."""
    session = compacted_session(project)
    memory_patch(session=session, changes={"task": "x"}, writer=Writer(author=Author.PERSON))
    return {
        "slug": project.slug,
        "id": session.pk,
        "position": 0,
        "part": 0,
        "index": 0,
        "turn": 1,
        "ordinal": 0,
        "number": 1,
        "run": run_create(
            project=project, sessions=[session], policies=[get_policy("off")], limits=[Limit(ratio=1.0)]
        ).pk,
        "job": import_job_create(project=project, name="log.json", file=io.BytesIO(b"{}")).pk,
        "member": 1,
        "fact": uuid4(),
        "token": "x" * 43,
        "period": "month",
        "format": "md",
        "name": "quickstart",
    }


def address_of(pattern: URLPattern, ids: dict[str, object]) -> str:
    return reverse(pattern.name, kwargs={name: ids[name] for name in pattern.pattern.converters})


@pytest.mark.slow
def test_a_visitor_is_asked_to_log_in(ids, subtests):
    for route, pattern in PAGES:
        with subtests.test(route):
            address = address_of(pattern, ids)
            if pattern.name in WITHOUT_PROJECT:
                assert Client().get(address).status_code == WITHOUT_PROJECT[pattern.name][0]
                continue
            for response in (Client().get(address), Client().post(address)):
                assert response.status_code == 302
                assert response.url.startswith("/login/?next=")


@pytest.mark.slow
def test_a_stranger_gets_404(ids, stranger_client, subtests):
    for route, pattern in PAGES:
        with subtests.test(route):
            address = address_of(pattern, ids)
            if pattern.name in WITHOUT_PROJECT:
                assert stranger_client.get(address).status_code == WITHOUT_PROJECT[pattern.name][1]
                continue
            assert "slug" in pattern.pattern.converters, "an address of a page says its project"
            assert_not_found(stranger_client, address)


@pytest.mark.slow
def test_ids_of_other_projects_are_not_found(ids, stranger_client, other_project, subtests):
    for route, pattern in PAGES:
        if "uuid:" in route:
            with subtests.test(route):
                address = address_of(pattern, {**ids, "slug": other_project.slug})
                assert_not_found(stranger_client, address)


def assert_not_found(client, address):
    statuses = {client.get(address).status_code, client.post(address).status_code}
    assert 404 in statuses
    assert statuses <= {404, 405}  # the allowed methods of a URL are not confidential


@pytest.mark.slow
def test_a_viewer_changes_nothing_but_personal_settings(ids, viewer_client, subtests):
    for route, pattern in PAGES:
        if "slug" in pattern.pattern.converters and pattern.name not in PERSONAL:
            with subtests.test(route):
                status = viewer_client.post(address_of(pattern, ids)).status_code
                # For objects of other kinds, the session's id selects none.
                assert status in ({403, 404} if pattern.name in BY_OTHER_IDS else {403, 405})


@pytest.mark.slow
def test_a_member_changes_no_settings_of_the_project(ids, member_client, subtests):
    for route, pattern in PAGES:
        if pattern.name.startswith(("settings", "connect_")) and pattern.name not in OF_MEMBERS:
            with subtests.test(route):
                assert member_client.post(address_of(pattern, ids)).status_code in {403, 405}


def test_a_superuser_is_no_exception(ids, admin_client):
    assert admin_client.get(reverse("session", args=[ids["slug"], ids["id"]])).status_code == 404
