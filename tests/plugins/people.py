"""Projects, their members, their API keys, and clients of the API."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from accounts.models import Membership, Project, Role, Scope
from accounts.services.api_keys import api_key_create
from accounts.services.projects import project_create
from tests.api.client import Api
from tests.plugins.reused import reused


@reused
def project(db: None) -> Project:
    return project_create(name="Alpha", slug="alpha")


@reused
def other_project(db: None) -> Project:
    return project_create(name="Beta", slug="beta")


def _member(project: Project, role: Role, name: str) -> User:
    user = User.objects.create_user(name, password="correct horse battery")
    Membership.objects.create(project=project, user=user, role=role)
    return user


@reused
def owner(project: Project) -> User:
    return _member(project, Role.OWNER, "olga")


@reused
def member(project: Project) -> User:
    return _member(project, Role.MEMBER, "marc")


@reused
def viewer(project: Project) -> User:
    return _member(project, Role.VIEWER, "vera")


@reused
def stranger(other_project: Project) -> User:
    """Return the owner of another project, who must not see anything of `project`."""
    return _member(other_project, Role.OWNER, "sten")


@pytest.fixture
def logged_in() -> Callable[[User], Client]:
    """Return a function that returns a Django test client for a user: `logged_in(owner).get("/")`."""

    return _log_in


class _Client(Client):
    def __deepcopy__(self, memo: dict[int, Any]) -> _Client:
        copied = _Client()
        copied.cookies = deepcopy(self.cookies, memo)
        return copied


def _log_in(user: User) -> Client:
    client = _Client()
    client.force_login(user)
    return client


@reused
def owner_client(owner: User) -> Client:
    return _log_in(owner)


@reused
def member_client(member: User) -> Client:
    return _log_in(member)


@reused
def viewer_client(viewer: User) -> Client:
    return _log_in(viewer)


@reused
def stranger_client(stranger: User) -> Client:
    return _log_in(stranger)


@reused
def api_key(project: Project) -> str:
    """Return the text of an API key of `project` with the scopes `push` and `read`."""
    return api_key_create(project=project, name="tests")[1]


@reused
def admin_key(project: Project) -> str:
    """Return the text of an API key of `project` with all scopes."""
    return api_key_create(project=project, name="admin", scopes=list(Scope))[1]


@reused
def stranger_api_key(other_project: Project) -> str:
    return api_key_create(project=other_project, name="tests")[1]


@reused
def api(api_key: str) -> Api:
    return Api(api_key)


@reused
def admin_api(admin_key: str) -> Api:
    """Return a client with all scopes."""
    return Api(admin_key)


@reused
def stranger_api(stranger_api_key: str) -> Api:
    """Return a client with a key of another project."""
    return Api(stranger_api_key)
