"""Owners invite members by a link that works once."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.utils import timezone

from accounts.models import AuditEvent, Invitation, Membership
from tests.locking import blocking

pytestmark = pytest.mark.django_db

PASSWORD = "a long one for nora 7"
ACCOUNT = {"username": "nora", "password1": PASSWORD, "password2": PASSWORD}


def invite(client, project, **form):
    """Create an invitation and return the path of its link."""
    response = client.post(f"/p/{project.slug}/settings/members/", {"role": "viewer", **form})
    assert response.status_code == 200
    return urlsplit(response.context["link"]).path


@pytest.mark.slow
def test_a_new_user_joins_by_the_link_once(project, owner_client):
    link = invite(owner_client, project)
    visitor = Client()
    page = visitor.get(link)
    assert page.status_code == 200
    assert project.name in page.content.decode()
    assert page["Referrer-Policy"] == "same-origin"  # "no-referrer" hides the origin of forms
    assert "no-store" in page["Cache-Control"]
    assert visitor.post(link, {**ACCOUNT, "password2": "another"}).status_code == 422
    assert visitor.post(link, ACCOUNT).status_code == 302
    assert Membership.objects.get(user__username="nora").role == "viewer"
    assert visitor.get(f"/p/{project.slug}/sessions/").status_code == 200
    assert Client().get(link).status_code == 404
    assert Client().post(link, {**ACCOUNT, "username": "eve"}).status_code == 404
    assert not User.objects.filter(username="eve").exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_form_that_is_sent_twice_creates_one_account(project, owner_client):
    link = invite(owner_client, project)
    with blocking(partial(Client().post, link, ACCOUNT)) as jobs:
        user = User.objects.create_user("nora")
    response = jobs[0].result()
    assert response.status_code == 422
    assert "already exists" in response.content.decode()
    assert list(User.objects.filter(username="nora")) == [user]


def test_an_existing_account_joins_only_when_its_user_accepts(
    project, owner_client, stranger, stranger_client
):
    link = invite(owner_client, project, role="member")
    assert not Membership.objects.filter(user=stranger, project=project).exists()
    assert Client().post(link, {**ACCOUNT, "username": stranger.username}).status_code == 422
    assert stranger_client.get(f"/p/{project.slug}/sessions/").status_code == 404
    assert stranger_client.post(link).status_code == 302
    assert Membership.objects.get(user=stranger, project=project).role == "member"
    again = invite(owner_client, project)
    shown = stranger_client.get(again).text
    assert "already a member" in shown
    assert "Join project" not in shown
    assert "already a member" in stranger_client.post(again).text
    assert Invitation.objects.count() == 1


@pytest.mark.slow
def test_owners_see_and_revoke_open_invitations_and_expired_ones_do_not_work(
    project, owner_client, viewer_client, stranger_client
):
    link = invite(owner_client, project, email="n@example.org")
    settings = f"/p/{project.slug}/settings/members/"
    page = owner_client.get(settings).content.decode()
    assert "n@example.org" in page
    assert link not in page
    assert "n@example.org" not in viewer_client.get(settings).content.decode()
    revoke = f"/p/{project.slug}/settings/invitations/{Invitation.objects.get().pk}/revoke/"
    assert viewer_client.post(revoke).status_code == 403
    assert stranger_client.post(revoke).status_code == 404
    assert owner_client.post(revoke).status_code == 302
    assert Client().get(link).status_code == 404
    late = invite(owner_client, project)
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert Client().get(late).status_code == 404
    assert stranger_client.post(late).status_code == 404
    token = link.rstrip("/").rpartition("/")[2]
    assert token not in repr(list(AuditEvent.objects.values()))


def test_the_link_is_mailed_if_the_server_can_send_mail(project, owner_client, settings):
    settings.EMAIL_HOST = "mail.example.org"
    link = invite(owner_client, project, email="n@example.org")
    [message] = mail.outbox
    assert message.to == ["n@example.org"]
    assert link in message.body
    settings.EMAIL_BACKEND = "tests.accounts.test_invitations.NoBackend"
    response = owner_client.post(
        f"/p/{project.slug}/settings/members/", {"role": "viewer", "email": "m@example.org"}
    )
    assert "Send this link" in response.content.decode()


class NoBackend:
    """A mail server that does not respond."""

    def __init__(self, **options: object) -> None:
        del options

    def send_messages(self, messages: object) -> int:
        del messages
        raise TimeoutError


def test_an_owner_can_leave(project, owner, owner_client, viewer):
    Membership.objects.filter(user=viewer).update(role="owner")
    membership = Membership.objects.get(user=owner)
    response = owner_client.post(f"/p/alpha/settings/members/{membership.pk}/remove/", follow=True)
    assert response.status_code == 200
    assert "You left the project Alpha." in response.text


@pytest.mark.parametrize("change", ["remove/", ""], ids=["removed", "demoted"])
def test_a_former_owner_cannot_return_by_an_own_invitation(
    project, owner_client, viewer, viewer_client, change
):
    membership = Membership.objects.get(user=viewer)
    member = f"/p/alpha/settings/members/{membership.pk}/"
    owner_client.post(member, {"role": "owner"})
    link, other = invite(viewer_client, project, role="owner"), invite(owner_client, project)
    assert owner_client.post(f"{member}{change}", {"role": "viewer"}).status_code == 302
    assert Client().post(link, ACCOUNT).status_code == 404
    assert Client().get(other).status_code == 200
    revoked = AuditEvent.objects.get(action="invitation.revoked")
    assert revoked.detail == {"role": "owner"}
