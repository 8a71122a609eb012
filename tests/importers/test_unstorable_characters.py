"""Logs with lone surrogates and NULs, which UTF-8 or Postgres rejects, are imported and compacted."""

from __future__ import annotations

import re
from itertools import cycle, islice
from pathlib import Path

import pytest

from accounts.models import Project
from importers.base import ImportedSession, LogFile
from importers.reading import log_sources
from importers.registry import recognize
from sessions.services.imports.store import session_import
from tests.api.client import Api
from tests.importers import test_absurd_figures as logs
from tests.importers.test_trajectories import KNOWN

pytestmark = pytest.mark.django_db

#: As escapes in the JSON of a log, and in JSON within its strings.
ODD = {"in the log": rb" \\ud800\\u0000 ", "in arguments": rb" \\\\ud800\\\\u0000 "}
USAGE = {"input_tokens": 7, "prompt_tokens": 7, "output_tokens": 5, "completion_tokens": 5}


def assert_imported_and_compacted(project: Project, api: Api, log: LogFile, odd: bytes) -> None:
    changed = LogFile(name=log.name, data=re.sub(rb"(?<=[a-z,]) (?=[a-z])", odd, log.data))
    assert changed.data != log.data
    importer, original = recognize(changed), recognize(log)
    assert importer is not None
    assert importer is original
    sessions = [item for item in importer.read(changed) if isinstance(item, ImportedSession)]
    assert len(sessions) == sum(isinstance(item, ImportedSession) for item in original.read(log))
    for session in islice(sessions, 2):
        stored = session_import(project=project, imported=session).session
        assert stored.turn_count == len(session.turns)
        path = f"sessions/{stored.external_id}"
        assert api.post(f"{path}/compact/", {}).status_code == 200
        for format in ("openai", "anthropic", "openai-responses"):
            assert api.get(f"{path}/prompt/?format={format}").status_code == 200


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("data", [logs.chat_log(USAGE), logs.claude_code_log(USAGE)], ids=["chat", "claude"])
def test_a_log_with_unstorable_characters_is_imported(
    project: Project, api: Api, data: bytes, odd: bytes
) -> None:
    assert_imported_and_compacted(project, api, LogFile(name="run.jsonl", data=data), odd)


@pytest.mark.trajectories
@pytest.mark.parametrize(("folder", "place"), list(zip(KNOWN, cycle(ODD))))
def test_real_logs_with_unstorable_characters_are_imported(
    trajectories: Path, project: Project, api: Api, folder: str, place: str
) -> None:
    found = [source.read() for source in log_sources([trajectories / folder])]
    middle = sorted(found, key=lambda log: len(log.data))[len(found) // 2]
    assert_imported_and_compacted(project, api, middle, ODD[place])
