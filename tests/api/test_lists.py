"""Every list continues from a cursor that it issued, and rejects any other."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from accounts.models import Project
from sessions.models import Compaction
from sessions.services.memory.proposals import facts_propose
from sessions.services.memory.revisions import Writer, memory_patch
from tests.api.client import Api, code
from tests.pages.transcripts import make_session, reading_turn
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

LISTS = (
    "sessions/?",
    "sessions/long/turns/?",
    "sessions/long/compactions/?",
    "sessions/long/search/?q=line&",
    "sessions/long/memory/revisions/?",
    "sessions/long/memory/timeline/?",
    "memory/facts/?",
    "replays/?",
)


@reused
def long(project: Project) -> Any:
    """Return a session with several items in each of its lists, and two other sessions."""
    session = make_session(project, [reading_turn(n) for n in range(3)], name="long")
    for number in (1, 2, 3):
        state = Compaction.State.SKIPPED
        Compaction.objects.create(
            session=session, number=number, state=state, trigger="user", turn_index=2, snapshot_position=6
        )
        writer = Writer(author="model", turn=number - 1, position=number)
        tried = {"tried": [f"way {each}" for each in range(number)]}
        memory_patch(session=session, changes=tried, writer=writer)
        make_session(project, [reading_turn(0)], name=f"beside {number}")
    facts_propose(session=session)
    return session


def cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


FOREIGN = ("%%%", *map(cursor, ("7", "[]", "[null]", '["x"]', "[-1]", f"[{2**40}]", '["x", "y"]', "[1, 2]")))


@pytest.mark.parametrize("address", LISTS)
def test_an_invalid_cursor_is_rejected(api: Api, long: Any, address: str) -> None:
    for foreign in FOREIGN:
        refused = api.get(f"{address}cursor={foreign}")
        assert (refused.status_code, code(refused)) == (400, "invalid_cursor"), foreign


@pytest.mark.parametrize("address", [address for address in LISTS if address != "replays/?"])
def test_pages_of_one_make_up_the_list(api: Api, long: Any, address: str) -> None:
    whole = api.get(address).json()
    assert whole["next_cursor"] is None
    assert len(whole["data"]) > 1
    rows, at = [], ""
    while at is not None:
        page = api.get(f"{address}limit=1&cursor={at}").json()
        rows, at = rows + page["data"], page["next_cursor"]
    assert rows == whole["data"]
