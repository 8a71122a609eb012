"""Agents that push turns and repeat each request until it is acknowledged."""

from __future__ import annotations

import http.client
import random
import time
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

import orjson

#: Tokens of the sessions' budget: small, so that compactions are frequent.
BUDGET = 6_000

_TIMEOUT = 40.0
_WORDS = [
    f"{stem}{ending}" for stem in ("load", "path", "cache", "token") for ending in ("er", "s", "_id", "ed")
]


class Api:
    """Requests to the instance, with one connection for each."""

    def __init__(self, port: int, key: str) -> None:
        self._port, self._key = port, key

    def call(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        """Return status and body, 0 without a response."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT)
        sent = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json", **headers}
        try:
            connection.request(method, f"/api/v1/{path}", body, sent)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """Return the JSON of a response, repeating the request for a minute until it succeeds."""
        for _ in range(60):
            status, body = self.call("GET", path)
            if status == 200:
                return orjson.loads(body)
            time.sleep(1)
        raise SystemExit(f"GET {path}: {status} {body[:300]!r}")


@dataclass
class Agent:
    """One session and its writer. `acknowledged` maps turns, as acknowledged, to the pushed messages."""

    name: str
    api: Api
    acknowledged: dict[int, list[bytes]] = field(default_factory=dict)
    pushed: int = 0
    attempts: int = 0
    problems: list[str] = field(default_factory=list)
    thread: Thread | None = None

    def start(self, done: Event) -> None:
        self.thread = Thread(target=self._run, args=(done,), daemon=True)
        self.thread.start()

    def _run(self, done: Event) -> None:
        body = {"id": self.name, "format": "anthropic", "agent": "chaos", "budget": {"input_tokens": BUDGET}}
        body["if_exists"] = "return"  # if a fault loses the response, it is created again
        self._until_accepted("sessions/", orjson.dumps(body), {200, 201})
        choose = random.Random(self.name)
        while not done.is_set():
            messages = self._turn(self.pushed, choose)
            body_bytes = b'{"messages":[' + b",".join(messages) + b"]}"
            key = f"{self.name}-{self.pushed}"
            answer = self._until_accepted(f"sessions/{self.name}/turns/", body_bytes, {201}, key)
            turn = answer["turn"]
            if turn in self.acknowledged:
                self.problems.append(f"{self.name}: turn {turn} was acknowledged twice")
            self.acknowledged[turn] = messages
            self.pushed += 1
            if self.pushed % 10 == 0:  # a repeated request must return the same turn
                again = self._until_accepted(f"sessions/{self.name}/turns/", body_bytes, {201}, key)
                if again["turn"] != turn:
                    self.problems.append(f"{self.name}: a retry of turn {turn} returned {again['turn']}")
            if self.pushed % 5 == 0:
                self.api.call("GET", f"sessions/{self.name}/prompt/")

    def _until_accepted(self, path: str, body: bytes, statuses: set[int], key: str = "") -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        while True:
            self.attempts += 1
            status, answer = self.api.call("POST", path, body, **headers)
            if status in statuses:
                return orjson.loads(answer)
            if 400 <= status < 500 and status not in {408, 429}:
                self.problems.append(f"{self.name}: {path} {status} {answer[:200]!r}")
            time.sleep(0.3)

    def _turn(self, number: int, choose: random.Random) -> list[bytes]:
        """Return the messages of a turn: a request or a tool result, then the model's answer."""
        text = f"{self.name} {number} é\\u0000 " + " ".join(choose.choices(_WORDS, k=choose.randint(20, 400)))
        call = {"type": "tool_use", "id": f"toolu_{self.name}_{number}", "name": "read_file"}
        use = {**call, "input": {"path": f"src/{self.name}_{number}.py", "n": 1.50}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{self.name}_{number - 1}", "content": text}
        content: Any = [result] if number else text
        user = {"role": "user", "content": content}
        return [orjson.dumps(user), orjson.dumps({"role": "assistant", "content": [use]})]
