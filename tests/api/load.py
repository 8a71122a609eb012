"""Concurrent writers that push over HTTP with retries, and a check of what must be stored afterwards."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import requests

#: Seconds after which a writer gives up on one turn.
PATIENCE = 120.0


@dataclass
class Acknowledged:
    """The responses of acknowledged pushes, by idempotency key."""

    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    retries: int = 0


def client_of(key: str) -> requests.Session:
    client = requests.Session()
    client.headers["Authorization"] = f"Bearer {key}"
    return client


def write(url: str, key: str, session: str, writer: str, turns: int, *, repeat: float = 0.3) -> Acknowledged:
    """Push `turns` turns one after another, some of them repeatedly, each until it is accepted."""
    done, chance = Acknowledged(), random.Random(writer)
    address = f"{url}/api/v1/sessions/{session}/turns/"
    with client_of(key) as client:
        for number in range(turns):
            name = f"{writer}-{number}"
            messages = [
                {"role": "user", "content": f"{name} asks. " + "lorem ipsum " * chance.randrange(60)},
                {"role": "assistant", "content": f"{name} is answered."},
            ]
            pushed = _push_until_accepted(client, address, name, messages, done)
            known = done.answers.setdefault(name, pushed)
            while chance.random() < repeat:
                assert _push_until_accepted(client, address, name, messages, done) == known
    return done


def _push_until_accepted(
    client: requests.Session, address: str, name: str, messages: list[dict[str, Any]], done: Acknowledged
) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            response = client.post(
                address, json={"messages": messages}, headers={"Idempotency-Key": name}, timeout=10
            )
            if response.status_code == 201:
                pushed: dict[str, Any] = response.json()
                return pushed
            assert response.status_code >= 500, response.text
        except requests.RequestException:
            pass
        assert time.monotonic() < deadline, f"{name} was never taken"
        done.retries += 1
        time.sleep(0.05)


def _read(client: requests.Session, address: str) -> dict[str, Any]:
    """Return the JSON at this address. Retries while the database is unavailable."""
    deadline = time.monotonic() + PATIENCE
    while (response := client.get(address, timeout=30)).status_code == 503:
        assert time.monotonic() < deadline, response.text
        time.sleep(0.05)
    assert response.status_code == 200, response.text
    read: dict[str, Any] = response.json()
    return read


def run_concurrently(jobs: list[Callable[[], Acknowledged]]) -> Acknowledged:
    """Run the jobs concurrently and return what was acknowledged to any of them."""
    whole = Acknowledged()
    with ThreadPoolExecutor(len(jobs)) as pool:
        for done in [future.result() for future in [pool.submit(job) for job in jobs]]:
            whole.answers |= done.answers
            whole.retries += done.retries
    return whole


def assert_all_stored_once(url: str, key: str, session: str, answers: dict[str, dict[str, Any]]) -> None:
    """Assert that every acknowledged turn is stored once, at the acknowledged position, without gaps."""
    turns: list[dict[str, Any]] = []
    cursor: str | None = ""
    base = f"{url}/api/v1/sessions/{session}/"
    with client_of(key) as client:
        while cursor is not None:
            page = _read(client, f"{base}turns/?limit=200&cursor={cursor}")
            turns, cursor = turns + page["data"], page["next_cursor"]
        data = _read(client, base)
    assert [turn["turn"] for turn in turns] == list(range(len(turns)))
    assert [turn["positions"]["first"] for turn in turns] == list(range(0, 2 * len(turns), 2))
    assert all(len(turn["messages"]) == 2 for turn in turns)
    assert (data["turns"], data["messages"]) == (len(turns), 2 * len(turns))
    stored = [turn["messages"][0]["content"].split()[0] for turn in turns]
    assert sorted(stored) == sorted(answers)
    assert {name: turn["turn"] for name, turn in zip(stored, turns, strict=True)} == {
        name: answer["turn"] for name, answer in answers.items()
    }
