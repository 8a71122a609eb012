"""Chat histories of aider, recorded by version 0.86.2 with scripted answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from compaction.messages import Usage
from importers.base import ImportedSession, LogFile
from importers.formats.aider import HISTORY_NAME
from importers.reading import log_sources
from tests.importers.logs import read
from tests.importers.pairing import bodies

DATA = (Path(__file__).parent / "recorded" / "aider.md").read_bytes()
START = "\n# aider chat started at 2026-01-05 10:00:00\n\n"


def sessions_of(data: bytes | str, name: str = f"/work/project/{HISTORY_NAME}") -> list[ImportedSession]:
    log = LogFile(name=name, data=data.encode() if isinstance(data, str) else data)
    sessions, damages = read(log, "aider")
    assert damages == []
    return sessions


def contents(session: ImportedSession) -> list[str]:
    return [body["content"] for body in bodies(session)]


def test_each_chat_is_a_session() -> None:
    first, second = sessions_of(DATA)
    assert (first.title, first.model) == ("Fix the sum", "openai/gpt-4.1")
    assert first.external_id == "aider-20261127-065547-3e9ba821"
    assert first.metadata == {"cwd": "/work/project", "client_version": "v0.86.2"}
    assert contents(first)[0] == "Fix the sum"
    assert contents(first)[1].endswith("=======\n    return a + b\n>>>>>>> REPLACE\n```")
    assert first.turns[0].cost_microusd == 5_300
    assert first.turns[0].usage == Usage(
        uncached_tokens=2_500, cache_read_tokens=0, cache_write_tokens=0, output_tokens=32
    )
    assert contents(second)[1:3] == [
        "You're welcome.\n\n#### A heading\n> a quote\n\nBye.",
        "line one\nline two",
    ]


def test_a_folder_contains_the_history(tmp_path: Path) -> None:
    for name in (HISTORY_NAME, "README.md"):
        (tmp_path / name).write_bytes(DATA)
    [source] = log_sources([tmp_path])
    assert len(sessions_of(source.read().data)) == 2


def test_an_answer_may_begin_with_a_heading() -> None:
    [session] = sessions_of(f"{START}#### Explain it  \n#### Be brief  \n\n#### Overview\n\nIt parses.\n")
    assert contents(session) == ["Explain it\nBe brief", "#### Overview\n\nIt parses."]


def test_commands() -> None:
    [session] = sessions_of(
        START + "#### /add a.py  \n> Added a.py to the chat.  \n\n#### /ask What is it?  \n\nA parser.\n\n"
        "#### /clear  \n> All chat history cleared.  \n\n#### /test pytest  \n> ==== test session ====\n"
        "1 failed\nDone.  \n\nI fix it.\n\n> Tokens: 1 sent, 2 received.  \n\n#### /exit  \n"
    )
    assert contents(session) == ["What is it?", "A parser.", "/test pytest", "I fix it."]
    assert [turn.client_compaction is not None for turn in session.turns] == [False, True]


@pytest.mark.parametrize(
    ("line", "uncached", "read", "written", "output"),
    [
        ("8,945 sent, 273 received. Cost: $0.03 request, $0.08 session.  ", 8_945, 0, 0, 273),
        (
            "12k sent, 4.0k cache write, 3.0k cache hit, 1.2k received.\nCost: $0.03 message  ",
            1_000,
            3_000,
            4_000,
            1_200,
        ),
        ("900 sent, 800 cached, 5 received. Cost: $0.03 message, $0.08 session.  ", 100, 800, 0, 5),
    ],
)
def test_sizes_and_costs(line: str, uncached: int, read: int, written: int, output: int) -> None:
    [session] = sessions_of(f"{START}#### Hello  \n\nHi!\n\n> Tokens: {line}\n\n#### Go on  \n")
    assert session.turns[0].cost_microusd == 30_000
    assert session.turns[0].usage == Usage(
        uncached_tokens=uncached, cache_read_tokens=read, cache_write_tokens=written, output_tokens=output
    )
    assert contents(session) == ["Hello", "Hi!", "Go on"]


def test_invalid_utf8_is_reported() -> None:
    log = LogFile(name=HISTORY_NAME, data=DATA.replace(b"subtracts", b"sub\xfftracts"))
    sessions, [damage] = read(log, "aider")
    assert (damage.line, len(sessions)) == (17, 2)
