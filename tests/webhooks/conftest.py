"""A client with all scopes, and a server that receives deliveries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.client import Api
from tests.plugins.reused import reused
from tests.webhooks.receiver import Receiver, receiver


@reused
def api(admin_api: Api) -> Api:
    return admin_api


@pytest.fixture
def other(settings: Any) -> Iterator[Receiver]:
    """A receiver on this machine; private addresses are allowed for it."""
    settings.CONTEXTAPP_WEBHOOK_ALLOW_PRIVATE = True
    with receiver() as data:
        yield data
