"""Requests and workers that use a session while it is being deleted."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from sessions.models import AgentSession
from sessions.services.search.indexing import search_index_run
from sessions.services.sessions.lifecycle import session_delete
from sessions.services.sessions.profiles import profiles_refresh
from sessions.services.tools.counting import tools_count
from tests.api.client import Api
from tests.api.talk import push, request
from tests.api.test_concurrent_retries import in_thread, waiting
from tests.background.world import eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("session"), pytest.mark.slow]


def during_deletion(*works: Callable[[], Any]) -> list[Any]:
    """Run all functions while the session is being deleted, and return their results."""
    session = AgentSession.objects.get()
    with ThreadPoolExecutor(len(works)) as pool:
        with transaction.atomic():
            session_delete(session=session)
            jobs = [pool.submit(in_thread, work) for work in works]
            eventually(lambda: waiting() == len(works))
        return [job.result() for job in jobs]


def test_the_session_is_not_found(api: Api, member_client: Client) -> None:
    push(api, [request()])
    session = AgentSession.objects.get()
    page = reverse("session_compact", args=[session.project.slug, session.pk])
    responses = during_deletion(
        partial(api.post, "sessions/s1/compact/", {}),
        partial(api.call, "PUT", "sessions/s1/messages/0/pin/"),
        partial(member_client.post, page),
    )
    assert [response.status_code for response in responses] == [404, 404, 404]


def test_workers_go_on(api: Api) -> None:
    push(api, [request()])
    works = [partial(work, everywhere=True) for work in (tools_count, search_index_run, profiles_refresh)]
    assert during_deletion(*works) == [0, 0, 0]
