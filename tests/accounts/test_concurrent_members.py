"""Two owners who change the members of a project at the same time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEvent, Membership, Project, Role
from accounts.services.members import member_remove, member_role_set
from tests.background.world import eventually
from tests.locking import in_thread, waiting

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def while_changing(change: Callable[[], object], *requests: Callable[[], Any]) -> list[Any]:
    """Send requests before a change is committed, and return their responses."""
    with ThreadPoolExecutor(len(requests)) as pool:
        with transaction.atomic():
            change()
            jobs = [pool.submit(in_thread, request) for request in requests]
            eventually(lambda: waiting() == len(requests))
        return [job.result() for job in jobs]


def test_a_project_keeps_an_owner(project: Project, owner: User, viewer: User, owner_client: Client) -> None:
    first, second = (Membership.objects.get(user=user) for user in (owner, viewer))

    def hand_over() -> None:
        member_role_set(membership=second, role=Role.OWNER)
        member_role_set(membership=first, role=Role.VIEWER)

    remove = reverse("settings_member_remove", args=[project.slug, second.pk])
    while_changing(hand_over, partial(owner_client.post, remove))
    assert Membership.objects.get(role=Role.OWNER) == second


def test_a_member_is_removed_once(project: Project, owner_client: Client, viewer: User) -> None:
    membership = Membership.objects.get(user=viewer)
    remove, change = (
        reverse(name, args=[project.slug, membership.pk])
        for name in ("settings_member_remove", "settings_member")
    )
    responses = while_changing(
        partial(member_remove, membership=Membership.objects.get(user=viewer)),
        partial(owner_client.post, remove, follow=True),
        partial(owner_client.post, change, {"role": Role.MEMBER}, follow=True),
    )
    assert all(f"{viewer.username} is no longer a member." in response.text for response in responses)
    assert AuditEvent.objects.filter(action__startswith="member.").count() == 1
