"""The process that records calls."""

from __future__ import annotations

import os
import re
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from gateway.calls import Call, KeyProof
from gateway.recording import process as recording_process
from gateway.recording.process import RecordingProcess
from gateway.recording.recorder import NotRecorded, StoreUnavailable
from sessions.models import AgentSession
from sessions.store.metric_files import exposition
from tests.gateway.anthropic_talk import request, stream, streamed, text
from tests.gateway.double import Provider, Reply
from tests.gateway.dying import die
from tests.gateway.running import Running
from tests.running.instance import children
from tests.serving import database_url

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


def call(key: str, session: str, *messages: dict[str, Any]) -> Call:
    sent = messages or ({"role": "user", "content": "Hi."},)
    proof = KeyProof.of(key)
    assert proof is not None
    return Call(
        id=session, at=0, provider="anthropic", endpoint="messages", upstream="https://a", mode="observe",
        key=proof, headers={"x-session-id": session}, body=request(*sent),
        status=200, response_type="text/event-stream", response=b"".join(stream(text("Hello."))),
        is_complete=True,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.settings")
    monkeypatch.setenv("CONTEXTAPP_TEST_HOME", str(settings.HOME))
    monkeypatch.setenv("DATABASE_URL", database_url())


def large_output() -> list[dict[str, Any]]:
    tool = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "word " * 150_000}
    return [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": [tool]},
        {"role": "user", "content": [result]},
    ]


def spikes() -> float:
    """Return the number of tool output spikes in the metrics."""
    found = re.search(r"^contextapp_tool_output_spikes_total (\S+)$", exposition().decode(), re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_it_starts_before_the_first_call_is_answered(
    provider: Provider, api_key: str, tmp_path: Path
) -> None:
    """Otherwise, the next calls of a fast agent would not be compacted: it takes some seconds."""
    process, is_started = RecordingProcess(), threading.Event()

    def begin() -> None:
        process.start()
        is_started.set()

    provider.otherwise = lambda _: streamed(text("Hello.")) if is_started.wait(20) else Reply(status=500)
    with Running(
        upstream=provider.url, spool=tmp_path, write=process.record, begin=begin, end=process.stop
    ) as gateway:
        headers = {"x-contextapp-key": api_key, "x-session-id": "s"}
        body = request({"role": "user", "content": "Hi."})
        assert gateway.call("/anthropic/v1/messages", body, headers).status == 200
        gateway.settle()
    assert AgentSession.objects.get().turn_count == 1


def test_it_records_reports_errors_and_is_started_again(api_key: str) -> None:
    process = RecordingProcess()
    counted = spikes()
    process.record(call(api_key, "one", *large_output()))
    assert AgentSession.objects.get(external_id="one").turn_count == 1
    assert spikes() == counted + 1
    with pytest.raises(NotRecorded, match="KeyInvalid"):
        process.record(call("ctx_00000000_wrong", "two"))
    for child in children(os.getpid()):
        if "spawn_main" in children(os.getpid()).get(child, ""):
            os.kill(child, signal.SIGKILL)
    with pytest.raises(StoreUnavailable):
        process.record(call(api_key, "three"))
    process.record(call(api_key, "three"))
    assert AgentSession.objects.filter(external_id="three").exists()
    process.stop()
    assert not any("spawn_main" in command for command in children(os.getpid()).values())


def test_a_call_that_kills_the_process_is_given_up(api_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other calls wait for it."""
    process = RecordingProcess()
    with monkeypatch.context() as patched:
        patched.setattr(recording_process, "_record", die)
        patched.setattr(recording_process, "MOST_DEATHS", 2)
        with pytest.raises(StoreUnavailable):
            process.record(call(api_key, "one"))
        with pytest.raises(NotRecorded, match="died 2 times"):
            process.record(call(api_key, "one"))
    process.record(call(api_key, "two"))
    assert AgentSession.objects.get().external_id == "two"
    process.stop()
