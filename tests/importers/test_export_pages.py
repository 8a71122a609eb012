"""Pages of an export, each imported separately, result in the same session as the whole export."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from accounts.models import Project
from sessions.models import AgentSession
from sessions.services.imports.find import ImportConflictError
from sessions.services.imports.store import session_import
from sessions.services.sessions.lifecycle import session_delete
from tests.importers.logs import jsonl, read

pytestmark = pytest.mark.django_db

Call = Mapping[str, Any]

RECORDED = Path(__file__).parent / "recorded"


def langsmith() -> Iterator[Call]:
    """Return the four calls of a thread."""
    runs = map(orjson.loads, (RECORDED / "langsmith.jsonl").read_bytes().splitlines())
    yield from (run for run in runs if run["run_type"] == "llm" and "thread-7" in str(run["extra"]))


def phoenix() -> Iterator[Call]:
    """Return the two calls of a session."""
    for span in orjson.loads((RECORDED / "phoenix.json").read_bytes())["data"]:
        is_call = span["span_kind"] == "LLM" and span["attributes"].get("session.id") == "sess-9"
        if is_call and "llm.input_messages.0.message.role" in span["attributes"]:
            yield span


def imported(project: Project, calls: Sequence[Call], format: str) -> AgentSession:
    [session] = read(jsonl(*calls), format)[0]
    return session_import(project=project, imported=session).session


def stored(session: AgentSession) -> Any:
    session.refresh_from_db()
    turns = session.turns.order_by("index").values_list(
        "message_count", "prompt_reported", "output_tokens", "response_id", "model", "at", "cost_microusd"
    )
    counters = (session.turn_count, session.message_count, session.output_tokens, session.cost_microusd)
    return [*turns], counters, session.peak_prompt_tokens, session.last_prompt_tokens, session.started_at


@pytest.mark.slow
@pytest.mark.parametrize(("calls", "format"), [(langsmith, "langsmith"), (phoenix, "phoenix")])
def test_pages_in_any_order(
    project: Project, calls: Callable[[], Iterator[Call]], format: str, subtests: pytest.Subtests
) -> None:
    found = list(calls())
    assert len(found) > 1
    whole = imported(project, found, format)
    expected = stored(whole)
    for order in (found, found[::-1], [*found[1:], found[0]]):
        with subtests.test(order=[found.index(call) for call in order]):
            session_delete(session=whole)
            for call in order:
                whole = imported(project, [call], format)
            assert stored(whole) == expected
            for call in order:  # again
                whole = imported(project, [call], format)
            assert stored(whole) == expected


def test_pages_of_different_conversations_conflict(project: Project) -> None:
    """Without the other pages, it is not known which is the session and which its sub-agent."""
    run = next(langsmith())
    other = {**run, "id": "other", "inputs": {"messages": [{"role": "user", "content": "Write a title"}]}}
    other = orjson.loads(orjson.dumps(other).replace(b"chatcmpl-", b"other-"))
    session = imported(project, [run], "langsmith")
    before = stored(session)
    with pytest.raises(ImportConflictError, match="join the pages to one file and import it"):
        imported(project, [other], "langsmith")
    assert stored(session) == before
