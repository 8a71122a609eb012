"""An instance with real servers, an agent that uses it, and access to its database."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from itertools import count
from typing import Any

import psycopg
from psycopg.rows import dict_row

from compaction.capabilities import capabilities_of
from compaction.validation import validate
from contextapp.embedded.home import broker_url, database_url
from tests.api.talk import whole_turn
from tests.provider.server import FakeProvider
from tests.running.instance import Instance, children

OPEN = ("pending", "running")
BUDGET = 4_000
# Short, but long enough that a busy machine causes no timeout.
SETTINGS = {
    "CONTEXTAPP_ANTHROPIC_API_KEY": "key of the tests",
    "CONTEXTAPP_SUMMARIZER_TIMEOUT": "5",
    "CONTEXTAPP_SUMMARIZER_TOTAL_TIMEOUT": "8",
    "CONTEXTAPP_SUMMARIZER_BACKOFF": "0.05",
    "CONTEXTAPP_SWEEP_SECONDS": "1",
    "CONTEXTAPP_REDISPATCH_SECONDS": "2",
    "CONTEXTAPP_LEASE_SECONDS": "5",
    "CONTEXTAPP_IDLE_CHECK_SECONDS": "1",
    "CONTEXTAPP_MEMORY_REST_SECONDS": "1",
    "CONTEXTAPP_COOLDOWN_SECONDS": "2",
    "CONTEXTAPP_UPGRADE_IDLE_SECONDS": "3",
    "CONTEXTAPP_WORKER_NICE": "0",  # the tests wait for the worker, which would starve next to other tests
    "CONTEXTAPP_WEB_WORKERS": "1",
    "CONTEXTAPP_WEB_THREADS": "8",
    "CONTEXTAPP_DB_POOL": "4",
    "CONTEXTAPP_WEBHOOK_ALLOW_PRIVATE": "1",
}

#: Maximum seconds for any operation.
PATIENCE = 120.0
#: Seconds between two looks at what a test waits for: looking takes the time of the servers.
PAUSE = 0.3

#: An external broker to run these tests on; "" for the embedded one.
OTHER_BROKER = os.environ.get("CONTEXTAPP_TEST_BROKER_URL", "")
_names = count()


def eventually(holds: Callable[[], Any]) -> Any:
    """Return the result of `holds` once it is true. Fails after a generous time-out."""
    deadline = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < deadline, f"not within {PATIENCE:g} s"
        time.sleep(PAUSE)
    return found


class World:
    """The instance and its provider, used with a project's `key` (default: the instance's key)."""

    def __init__(self, instance: Instance, provider: FakeProvider, key: str = "") -> None:
        self.instance = instance
        self.provider = provider
        self.key = key or (instance.home / "api-key").read_text().strip()
        self.broker = OTHER_BROKER or broker_url(instance.home)

    # -- The agent --------------------------------------------------------------------------------

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Call the API. Returns status and JSON. Reads are retried after a 503."""
        while True:
            status, result = self.call_once(method, path, body, **headers)
            if status != 503 or method != "GET":
                return status, result
            time.sleep(0.1)

    def call_once(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Call the API without retries. Returns status and JSON."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.instance.port}/api/v1/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **headers},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def stubborn(self, method: str, path: str, body: Any, key: str) -> Any:
        """Push and retry with the same idempotency key until it succeeds, as the client does."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                status, result = self.call(method, path, body, **{"Idempotency-Key": key})
                if status < 500:
                    assert status == 201, result
                    return result
            except OSError:
                pass
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def session(self, *, budget: int = BUDGET, **fields: Any) -> str:
        name = f"s{next(_names)}"
        body = {"id": name, "format": "anthropic", "budget": {"input_tokens": budget}, **fields}
        status, result = self.call("POST", "sessions/", body)
        assert status == 201, result
        return name

    def push(self, session: str, number: int, *, lines: int = 40) -> dict[str, Any]:
        status, result = self.call("POST", f"sessions/{session}/turns/", {"messages": turn(number, lines)})
        assert status == 201, result
        return result

    def fire(self, **fields: Any) -> tuple[str, dict[str, Any]]:
        """Return a session whose soft trigger has just been reached, and the push's response."""
        session = self.session(**fields)
        for number in range(30):
            fired = self.push(session, number)["fired"]
            if fired:
                assert fired[0]["trigger"] == "soft", fired
                return session, fired[0]
        raise AssertionError("nothing fired")

    def prompt(self, session: str, query: str = "") -> dict[str, Any]:
        """Return the prompt, and check that it is valid and fits."""
        status, served = self.call("GET", f"sessions/{session}/prompt/{query}")
        assert status == 200, served
        found = validate(
            served["messages"],
            served["format"],
            system=served.get("system"),
            capabilities=capabilities_of(""),
        )
        assert found == (), found[:3]
        assert served["fits"], served["reason"]
        return served

    def compactions(self, session: str) -> list[dict[str, Any]]:
        """Oldest first."""
        return self.call("GET", f"sessions/{session}/compactions/")[1]["data"][::-1]

    def settled(self, session: str) -> list[dict[str, Any]]:
        """Wait until no compaction is open and return all; prompts must be valid at all times."""

        def look() -> list[dict[str, Any]]:
            self.prompt(session)
            found = self.compactions(session)
            return found if found and not any(one["state"] in OPEN for one in found) else []

        return eventually(look)

    # -- The database -----------------------------------------------------------------------------

    def rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        """Return the rows of a query as soon as the database is available."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with psycopg.connect(database_url(self.instance.home), row_factory=dict_row) as connection:
                    cursor = connection.execute(sql, parameters)
                    return cursor.fetchall() if cursor.description else []
            except psycopg.OperationalError:
                assert time.monotonic() < deadline
                time.sleep(0.1)

    def all_settled(self) -> bool:
        return not self.rows("SELECT id FROM agent_sessions_compaction WHERE state IN ('pending', 'running')")

    def forget_upgrades(self) -> None:
        """Prevent pending recap upgrades from calling the model in a later test."""
        self.rows("UPDATE agent_sessions_compaction SET awaits_upgrade = false WHERE awaits_upgrade")

    def assert_sound(self) -> None:
        """Check that all compactions ended with a reason, none was applied twice, and no turn was lost."""
        assert self.all_settled()
        assert not self.rows(
            "SELECT id FROM agent_sessions_compaction WHERE state IN ('failed', 'skipped') AND reason = ''"
        )
        assert not self.rows(
            """SELECT compaction_id FROM agent_sessions_recap GROUP BY compaction_id, version
               HAVING count(*) > 1"""
        )
        # Two evictions of one span, or edits of an unfinished compaction, mean that it was applied twice.
        assert not self.rows(
            """SELECT a.id FROM agent_sessions_edit a JOIN agent_sessions_edit b
                 ON a.session_id = b.session_id AND a.id < b.id
               JOIN agent_sessions_promptsnapshot p
                 ON p.session_id = a.session_id AND a.id = ANY(p.edits) AND b.id = ANY(p.edits)
              WHERE a.op = 'evict' AND b.op = 'evict' AND a.position <= b."end" AND b.position <= a."end" """
        )
        assert not self.rows(
            """SELECT e.id FROM agent_sessions_edit e JOIN agent_sessions_compaction c
                 ON c.id = e.compaction_id WHERE c.state NOT IN ('done', 'reverted')"""
        )
        assert not self.rows(
            """SELECT s.id FROM agent_sessions_agentsession s
                WHERE s.turn_count <> (SELECT count(*) FROM agent_sessions_turn t WHERE t.session_id = s.id)
                   OR s.message_count <>
                      (SELECT count(*) FROM agent_sessions_message m WHERE m.session_id = s.id)"""
        )

    def is_ready(self) -> bool:
        """Return whether the web server has reconnected to its database and broker."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.instance.port}/readyz", timeout=10):
                return self.call("GET", "sessions/")[0] == 200
        except OSError:
            return False

    # -- Processes --------------------------------------------------------------------------------

    def processes(self, part: str) -> list[int]:
        """Return the instance's processes whose command line contains `part`, parents first."""
        below = children(self.instance.process.pid)
        return sorted(pid for pid, line in below.items() if part in line)

    def kill(self, part: str, number: signal.Signals = signal.SIGKILL) -> None:
        for pid in self.processes(part):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue


def turn(number: int, lines: int = 40) -> list[dict[str, Any]]:
    """Return a complete turn without open calls."""
    return whole_turn(number, lines=lines)
