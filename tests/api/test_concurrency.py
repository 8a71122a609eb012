"""Concurrent writers on the real web server: no gaps, no duplicates, no acknowledged turn is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import requests

from compaction.validation import validate
from tests.api.load import assert_all_stored_once, client_of, run_concurrently, write

WRITERS = 16


def make(url: str, key: str, name: str, **fields: Any) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    made = requests.post(f"{url}/api/v1/sessions/", json={"id": name, **fields}, headers=headers, timeout=30)
    assert made.status_code == 201, made.text


def test_many_writers_on_one_session(served_url: str, api_key: str) -> None:
    make(served_url, api_key, "one")
    done = run_concurrently([partial(write, served_url, api_key, "one", f"w{n}", 12) for n in range(WRITERS)])
    assert len(done.answers) == 12 * WRITERS
    assert done.retries == 0
    assert_all_stored_once(served_url, api_key, "one", done.answers)


def test_many_concurrent_retries_of_one_writer(served_url: str, api_key: str) -> None:
    """A client times out and sends a push again while the first one is still being stored."""
    make(served_url, api_key, "twins")
    done = run_concurrently([partial(write, served_url, api_key, "twins", "w", 15) for _ in range(8)])
    assert len(done.answers) == 15
    assert_all_stored_once(served_url, api_key, "twins", done.answers)


def test_many_writers_on_many_sessions(served_url: str, api_key: str) -> None:
    names = [f"many-{number}" for number in range(WRITERS)]
    for name in names:
        make(served_url, api_key, name)
    with ThreadPoolExecutor(WRITERS) as pool:
        jobs = {name: pool.submit(write, served_url, api_key, name, name, 10) for name in names}
    for name, job in jobs.items():
        assert len(job.result().answers) == 10
        assert_all_stored_once(served_url, api_key, name, job.result().answers)


def test_writers_readers_and_compactions_on_one_session(served_url: str, api_key: str) -> None:
    """Every served prompt is complete and valid under concurrent writes and compactions."""
    make(served_url, api_key, "busy", budget={"input_tokens": 1_500}, policy={"soft": 0})
    address = f"{served_url}/api/v1/sessions/busy"

    def read(format: str) -> None:
        with client_of(api_key) as client:
            for _ in range(40):
                served = client.get(f"{address}/prompt/?manifest=1&format={format}", timeout=30).json()
                assert validate(served["messages"], format) == ()
                if format == "anthropic":
                    counted = sum(entry["tokens"] for entry in served["manifest"])
                    assert counted == served["tokens"]

    def compact() -> None:
        with client_of(api_key) as client:
            for _ in range(10):
                done = client.post(f"{address}/compact/", json={}, timeout=30)
                assert done.status_code in {200, 409}, done.text
                if done.json().get("state") == "done":
                    number = done.json()["number"]
                    undone = client.post(f"{address}/compactions/{number}/revert/", json={}, timeout=30)
                    assert undone.status_code in {200, 409}, undone.text

    with ThreadPoolExecutor(9) as pool:
        writers = [pool.submit(write, served_url, api_key, "busy", f"w{n}", 15) for n in range(6)]
        others = [pool.submit(read, "anthropic"), pool.submit(read, "openai"), pool.submit(compact)]
    for other in others:
        other.result()
    answers = {name: answer for writer in writers for name, answer in writer.result().answers.items()}
    assert len(answers) == 90
    assert_all_stored_once(served_url, api_key, "busy", answers)


@pytest.mark.parametrize("writers", [8])
def test_one_of_the_writers_expecting_the_same_turn_wins(served_url: str, api_key: str, writers: int) -> None:
    make(served_url, api_key, "race")
    headers = {"Authorization": f"Bearer {api_key}"}

    def push(writer: int) -> int:
        body = {"messages": [{"role": "user", "content": f"{writer}"}], "expected_turn": 0}
        address = f"{served_url}/api/v1/sessions/race/turns/"
        return requests.post(address, json=body, headers=headers, timeout=30).status_code

    with ThreadPoolExecutor(writers) as pool:
        assert sorted(pool.map(push, range(writers))) == [201] + [409] * (writers - 1)


def test_concurrent_retries_with_an_expected_turn_are_stored_once(served_url: str, api_key: str) -> None:
    headers = {"Authorization": f"Bearer {api_key}", "Idempotency-Key": "k"}
    for attempt in range(10):
        make(served_url, api_key, f"retry-{attempt}")
        address = f"{served_url}/api/v1/sessions/retry-{attempt}/turns/"
        body = {"messages": [{"role": "user", "content": "x"}], "expected_turn": 0}

        def push(_: int, address: str = address, body: dict[str, Any] = body) -> tuple[int, str]:
            response = requests.post(address, json=body, headers=headers, timeout=30)
            return response.status_code, response.text

        with ThreadPoolExecutor(6) as pool:
            answers = set(pool.map(push, range(6)))
        assert {status for status, _ in answers} == {201}, answers
        assert len(answers) == 1
