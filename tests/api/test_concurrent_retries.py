"""Two pushes with the same idempotency key that wait for the session's lock at the same time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.models import ApiKey
from sessions.models import AgentSession, Preamble, Turn
from tests.api.client import Api, code
from tests.api.talk import TURNS, push, request
from tests.background.world import eventually
from tests.locking import in_thread, waiting

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("session")]


def pushed_at_once(api: Api, *bodies: dict[str, Any], meanwhile: Callable[[], object] = int) -> list[Any]:
    """Push all bodies with one key while the session is locked, and return the responses once it is free."""
    with ThreadPoolExecutor(len(bodies)) as pool:
        with transaction.atomic():
            AgentSession.objects.select_for_update().get()
            jobs = [pool.submit(in_thread, partial(api.post, TURNS, b, idempotency_key="k")) for b in bodies]
            eventually(lambda: waiting() == len(bodies))
            meanwhile()
        return [job.result() for job in jobs]


def test_the_same_push_is_stored_once_and_answered_twice(api: Api) -> None:
    body = {"messages": [request()], "system": "Be brief."}
    first, second = pushed_at_once(api, body, body)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.content == second.content
    assert Turn.objects.count() == 1


def test_a_different_push_with_the_same_key_is_rejected(api: Api) -> None:
    bodies = [{"messages": [request(name)], "system": "Be brief."} for name in ("first", "second")]
    refused, stored = sorted(pushed_at_once(api, *bodies), key=lambda response: -response.status_code)
    assert (refused.status_code, code(refused)) == (422, "idempotency_mismatch")
    assert stored.status_code == 201
    assert Turn.objects.count() == 1


def test_a_rejected_push_leaves_no_system_prompt(api: Api) -> None:
    bodies = [{"messages": [request()], "system": f"Be {how}."} for how in ("brief", "thorough")]
    assert sorted(r.status_code for r in pushed_at_once(api, *bodies)) == [201, 422]
    assert Preamble.objects.count() == 1
    assert push(api, [request()], system="Be kind.")["turn"] == 1


def test_a_key_revoked_while_the_push_waits_stores_nothing(api: Api) -> None:
    body = {"messages": [request()], "system": "Be brief."}

    def revoke() -> None:
        ApiKey.objects.update(revoked_at=timezone.now())

    [response] = pushed_at_once(api, body, meanwhile=revoke)
    assert response.status_code == 401
    assert not Turn.objects.exists()
    assert not Preamble.objects.exists()
