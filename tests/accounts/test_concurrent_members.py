"""Two owners who change the members of a project at the same time."""

from __future__ import annotations

from functools import partial

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEvent, Membership, Project, Role
from accounts.services.members import member_remove, member_role_set
from tests.locking import blocking

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def test_a_project_keeps_an_owner(project: Project, owner: User, viewer: User, owner_client: Client) -> None:
    first, second = (Membership.objects.get(user=user) for user in (owner, viewer))
    remove = reverse("settings_member_remove", args=[project.slug, second.pk])
    with blocking(partial(owner_client.post, remove)):
        member_role_set(membership=second, role=Role.OWNER)
        member_role_set(membership=first, role=Role.VIEWER)
    assert Membership.objects.get(role=Role.OWNER) == second


def test_a_member_is_removed_once(project: Project, owner_client: Client, viewer: User) -> None:
    membership = Membership.objects.get(user=viewer)
    remove, change = (
        reverse(name, args=[project.slug, membership.pk])
        for name in ("settings_member_remove", "settings_member")
    )
    requests = [
        partial(owner_client.post, remove, follow=True),
        partial(owner_client.post, change, {"role": Role.MEMBER}, follow=True),
    ]
    with blocking(*requests) as jobs:
        member_remove(membership=membership)
    assert all(f"{viewer.username} is no longer a member." in job.result().text for job in jobs)
    assert AuditEvent.objects.filter(action__startswith="member.").count() == 1
