"""`manage.py keys` and `manage.py members`."""

from __future__ import annotations

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from accounts.models import ApiKey, AuditEvent, Membership
from accounts.selectors import api_key_find

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_create_list_and_revoke_a_key(project):
    text = run("keys", "--project", "alpha", "create", "ci", "--days", "3", "--rate-limit", "90").strip()
    key = api_key_find(text)
    assert key is not None
    assert (key.name, key.scopes, key.rate_limit) == ("ci", ["push", "read"], 90)
    assert key.expires_at is not None
    assert key.prefix in run("keys", "--project", "alpha", "list")
    run("keys", "--project", "alpha", "revoke", key.prefix)
    assert api_key_find(text) is None
    assert key.prefix not in run("keys", "--project", "alpha", "list")


def test_a_key_of_another_project_is_not_found(project, other_project):
    prefix = run("keys", "--project", "beta", "create", "x").split("_")[1]
    with pytest.raises(CommandError):
        run("keys", "--project", "alpha", "revoke", prefix)
    assert ApiKey.objects.filter(revoked_at=None).count() == 1


def test_add_change_and_remove_a_member(project, owner):
    output = run("members", "--project", "alpha", "add", "nora", "--role", "viewer")
    assert User.objects.get(username="nora").check_password(output.rsplit(" ", 1)[1].strip())
    assert "Added nora to alpha as viewer." in output
    output = run("members", "--project", "alpha", "role", "nora", "member")
    assert output.strip() == "Changed the role of nora in alpha to member."
    assert "member    nora" in run("members", "--project", "alpha", "list")
    output = run("members", "--project", "alpha", "remove", "nora")
    assert output.strip() == "Removed nora from alpha."
    assert not Membership.objects.filter(user__username="nora").exists()
    actions = AuditEvent.objects.filter(target="nora").order_by("at").values_list("action", flat=True)
    assert list(actions) == ["member.added", "member.changed", "member.removed"]


@pytest.mark.parametrize("change", [("remove", "olga"), ("role", "olga", "viewer")])
def test_the_last_owner_cannot_be_removed_or_demoted(project, owner, change):
    with pytest.raises(CommandError, match="at least one owner"):
        run("members", "--project", "alpha", *change)


@pytest.mark.parametrize("command", [("keys", "list"), ("members", "list")])
def test_an_unknown_project_is_an_error(db, command):
    with pytest.raises(CommandError, match="does not exist"):
        run(command[0], "--project", "nowhere", command[1])


@pytest.mark.parametrize(
    "arguments",
    [
        ("--days", "0"),
        ("--days", "-5"),
        ("--days", "99999999999"),
        ("--rate-limit", "0"),
        ("--rate-limit", "x"),
    ],
)
def test_a_key_is_not_created_with_other_limits_than_given(project, arguments):
    with pytest.raises(CommandError, match="must be a number from 1"):
        run("keys", "--project", "alpha", "create", "ci", *arguments)
    assert not ApiKey.objects.exists()


def test_a_key_needs_a_name(project):
    with pytest.raises(CommandError, match="must have 1 to 200 characters"):
        run("keys", "--project", "alpha", "create", " ")


@pytest.mark.parametrize("arguments", [("",), ("a b",), ("nora", "--email", "nora")])
def test_a_user_needs_a_valid_name_and_address(project, arguments):
    with pytest.raises(CommandError, match="cannot be created"):
        run("members", "--project", "alpha", "add", *arguments)
    assert not Membership.objects.exists()
