"""A client with a read-only key, and a session."""

from __future__ import annotations

from typing import Any

from accounts.models import Project
from accounts.services import api_key_create
from tests.api.client import Api
from tests.plugins.reused import reused


@reused
def reader_api(project: Project) -> Api:
    """Return a client with a read-only key."""
    return Api(api_key_create(project=project, name="reader", scopes=["read"])[1])


@reused
def session(api: Api) -> dict[str, Any]:
    """A session without turns, in Anthropic's format, with the external id `s1`."""
    made: dict[str, Any] = api.post("sessions/", {"id": "s1", "format": "anthropic", "agent": "tests"}).json()
    return made
