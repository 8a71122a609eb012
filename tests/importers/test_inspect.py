"""Evaluation logs of Inspect, recorded by version 0.3.285 with scripted answers."""

from __future__ import annotations

import io
import zipfile
from copy import copy
from pathlib import Path
from typing import Any

import orjson
import pytest

from compaction.messages import Usage
from importers.archives import entries, entry_data
from importers.base import ImportedSession, LogFile
from tests.importers.logs import document, read
from tests.importers.pairing import bodies, misplaced

JSON = dict[str, Any]

ARCHIVE = (Path(__file__).parent / "recorded" / "inspect.eval").read_bytes()
FILES = {entry.name: orjson.loads(entry_data(ARCHIVE, entry)) for entry in entries(ARCHIVE)[0]}
FACTS, SAMPLE = FILES["header.json"], FILES["samples/first_epoch_1.json"]


def as_document(*samples: Any) -> LogFile:
    return document({**FACTS, "samples": samples})


def archive(**files: Any) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("_journal/start.json", orjson.dumps(FACTS))
        for name, value in files.items():
            content = value if isinstance(value, bytes) else orjson.dumps(value)
            written.writestr(f"samples/{name}_epoch_1.json", content)
    return target.getvalue()


def sample(*events: JSON, **fields: Any) -> JSON:
    return {"id": 1, "epoch": 1, "uuid": "s1", "input": "Hi", "events": events, **fields}


def call(messages: list[JSON], answer: JSON, usage: JSON | None = None, **fields: Any) -> JSON:
    output = {"model": "m", "choices": [{"message": {"role": "assistant", **answer}}], "usage": usage}
    return {
        "event": "model",
        "model": "anthropic/m",
        "input": messages,
        "tools": [],
        "output": output,
        **fields,
    }


def sessions_of(log: LogFile) -> list[ImportedSession]:
    sessions, damages = read(log, "inspect")
    assert damages == []
    assert not [complaint for session in sessions for complaint in misplaced(session)]
    return sessions


def test_an_archive_and_a_document_contain_the_same_sessions() -> None:
    session, agent = sessions_of(LogFile(name="run.eval", data=ARCHIVE))
    assert [session, agent] == sessions_of(as_document(SAMPLE))
    assert (session.title, session.model, session.external_id) == ("Add 1 and 2", "gpt-4.1", SAMPLE["uuid"])
    assert session.metadata == {"task": "sums", "sample_id": "first", "epoch": 1, "score_includes": "C"}
    assert session.system.startswith("You add numbers.\n")
    assert [tool["name"] for tool in session.tools] == ["add", "helper", "submit"]
    assert [turn.response_id for turn in session.turns] == ["chatcmpl-0001", "chatcmpl-0002", "chatcmpl-0005"]
    assert session.turns[0].usage == Usage(
        uncached_tokens=98, cache_read_tokens=97, cache_write_tokens=0, output_tokens=41
    )
    assert bodies(session)[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "call_001_0", "content": "3"},
        {"type": "tool_result", "tool_use_id": "call_001_1", "content": "negative", "is_error": True},
    ]
    assert (agent.parent_external_id, agent.title) == (session.external_id, "HELP me add")
    assert [turn.response_id for turn in agent.turns] == ["chatcmpl-0003", "chatcmpl-0004"]


def test_content_that_is_stored_once() -> None:
    picture = {"type": "image", "image": "attachment://ab12"}
    reasoning = {"type": "reasoning", "reasoning": "attachment://cd34", "signature": "c2ln"}
    asked = {"role": "user", "content": [picture, {"type": "text", "text": "Which color?"}]}
    attachments = {"ab12": "data:image/png;base64,AAAA", "cd34": "It is red."}
    log = as_document(
        sample(
            call([asked], {"content": [reasoning, {"type": "text", "text": "Red."}]}), attachments=attachments
        )
    )
    [session] = sessions_of(log)
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    assert bodies(session)[0]["content"][0] == {"type": "image", "source": source}
    assert bodies(session)[1]["content"][0] == {
        "type": "thinking",
        "thinking": "It is red.",
        "signature": "c2ln",
    }


def test_calls_of_scorers_are_left_out() -> None:
    asked = [{"role": "user", "content": "Hello"}]
    log = as_document(
        sample(
            call(asked, {"content": "Hi"}),
            {"event": "span_begin", "id": "s1", "type": "scorers"},
            {"event": "span_begin", "id": "s2", "type": "scorer", "parent_id": "s1"},
            call([{"role": "user", "content": "Is it polite?"}], {"content": "Yes"}, span_id="s2"),
        )
    )
    [session] = sessions_of(log)
    assert [body["content"][0]["text"] for body in bodies(session)] == ["Hello", "Hi"]


@pytest.mark.parametrize(("total", "uncached"), [(140, 20), (220, 100)])
def test_input_tokens_with_and_without_cached_ones(total: int, uncached: int) -> None:
    usage = {
        "input_tokens": 100,
        "output_tokens": 40,
        "total_tokens": total,
        "input_tokens_cache_read": 80,
    }
    log = as_document(sample(call([{"role": "user", "content": "Hello"}], {"content": "Hi"}, usage)))
    [session] = sessions_of(log)
    assert session.turns[0].usage is not None
    assert session.turns[0].usage.uncached_tokens == uncached


def test_a_sample_without_events_has_its_messages() -> None:
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    [session] = sessions_of(as_document(sample(messages=messages)))
    assert [body["role"] for body in bodies(session)] == ["user", "assistant"]


def test_damaged_samples_are_reported() -> None:
    data = archive(a=SAMPLE, b=b'{"id": 1', c=5, d={**SAMPLE, "uuid": "other"})
    sessions, damages = read(LogFile(name="run.eval", data=data), "inspect")
    assert [session.external_id for session in sessions if not session.parent_external_id] == [
        SAMPLE["uuid"],
        "other",
    ]
    assert [damage.reason.split(":")[0] for damage in damages] == [
        "samples/b_epoch_1.json",
        "samples/c_epoch_1.json",
    ]


def test_the_complete_samples_of_a_truncated_archive_are_read() -> None:
    data = archive(a=SAMPLE, b={**SAMPLE, "uuid": "other"})
    middle = data.index(b"samples/b") + 40
    sessions, damages = read(LogFile(name="run.eval", data=data[:middle]), "inspect")
    assert len(sessions) == 2
    assert [damage.reason for damage in damages] == [
        "the archive is truncated or damaged; its complete samples were read",
        "samples/b_epoch_1.json: the archive is truncated",
    ]


def test_many_entries_for_the_same_bytes_are_read_once():
    target = io.BytesIO(archive(a=sample(), b=sample()))
    with zipfile.ZipFile(target, "a") as written:
        original = written.getinfo("samples/b_epoch_1.json")
        for number in range(1_000):
            listed = copy(original)
            listed.filename = listed.orig_filename = f"samples/b{number}_epoch_1.json"
            written.filelist.append(listed)
        written.writestr("summaries.json", "[]")
    names = [entry.name for entry in entries(target.getvalue())[0]]
    assert names == [
        "_journal/start.json", "samples/a_epoch_1.json", "samples/b_epoch_1.json", "summaries.json"
    ]  # fmt: skip
