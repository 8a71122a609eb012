"""Agents that call a provider through the gateway, and the check of what it recorded."""

from __future__ import annotations

import http.client
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any
from urllib.parse import quote

import orjson

from bench.chaos.provider import Provider, answer
from bench.chaos.writers import Api

#: Calls after which an agent begins another session: each call contains the whole history.
_CALLS = 60
_PAUSE = 1.0
_TIMEOUT = 40.0

#: Seconds in which the gateway must have recorded the last calls.
_SETTLE = 240.0


@dataclass
class GatewayAgent:
    """One agent. `histories` maps its sessions to the messages that it has sent and received.

    `handled` counts how the gateway has handled its calls, as the header of the response states.
    """

    name: str
    mode: str
    port: int
    key: str
    provider: Provider
    histories: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    answered: int = 0
    handled: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    thread: Thread | None = None

    def start(self, done: Event) -> None:
        self.thread = Thread(target=self._run, args=(done,), daemon=True)
        self.thread.start()

    def finish(self) -> None:
        """Call once more in each session: the gateway may have died with the last call before."""
        for session, history in self.histories.items():
            self._call(session, history, Event())

    def _run(self, done: Event) -> None:
        while not done.is_set():
            session = f"{self.mode}-{self.name}-{len(self.histories)}"
            history = self.histories.setdefault(session, [])
            for _ in range(_CALLS):
                self._call(session, history, done)
                if done.is_set():
                    break
                time.sleep(_PAUSE)

    def _call(self, session: str, history: list[dict[str, Any]], done: Event) -> None:
        """Send the next message of the agent until it is answered, and add both to the history.

        The message depends only on the session and its history, because `finish` repeats a call that was
        given up at the end of the run, and that the gateway may have recorded.
        """
        choose = random.Random(f"{session} {len(history)}")
        text = f"{session} {len(history)} " + "words " * choose.randint(10, 300)
        content: Any = text
        if history:
            result = {"type": "tool_result", "tool_use_id": history[-1]["content"][1]["id"], "content": text}
            content = [result]
        messages = [*history, {"role": "user", "content": content}]
        request = {
            "model": "claude-sonnet-4-5",
            "max_tokens": 100,
            "stream": choose.random() < 0.5,
            "metadata": {"user_id": session},
            "messages": messages,
        }
        body = orjson.dumps(request)
        self.provider.expect(body)
        while not self._post(session, body):
            if done.is_set():
                return
            time.sleep(0.3)
        self.answered += 1
        history[:] = [*messages, {"role": "assistant", "content": answer(request)["content"]}]

    def _post(self, session: str, body: bytes) -> bool:
        """Return whether the call was answered completely."""
        headers = {
            "Content-Type": "application/json",
            "X-Contextapp-Key": self.key,
            "X-Contextapp-Mode": self.mode,
            "X-Contextapp-Budget": "6000",
            "X-Session-Id": session,
            "X-Api-Key": "sk-ant-chaos",
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_TIMEOUT)
        try:
            connection.request("POST", "/gateway/anthropic/v1/messages", body, headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        if response.status != 200:
            self.problems.append(f"{session}: the gateway answered {response.status} {data[:200]!r}")
            return False
        self.handled[response.headers.get("X-Contextapp", "").partition("; tokens")[0]] += 1
        return True


def gateway_audit(api: Api, agents: list[GatewayAgent]) -> Counter[str]:
    """Compare the recorded sessions with the histories of the agents."""
    found = Counter(dict.fromkeys(("gateway: lost", "gateway: doubled", "gateway: misplaced"), 0))
    found["gateway: wrong answers"] = sum(len(agent.problems) for agent in agents)
    until = time.monotonic() + _SETTLE
    for agent in agents:
        for session, history in agent.histories.items():
            sent = [orjson.dumps(message) for message in history]
            while (stored := _recorded(api, session)) != sent and time.monotonic() < until:
                time.sleep(2)
            missing, more = Counter(sent) - Counter(stored), Counter(stored) - Counter(sent)
            for kind, messages in (("lost", missing), ("not sent", more)):
                agent.problems += [f"{session}: {kind}: {message[:300]!r}" for message in messages]
            found["gateway: lost"] += missing.total()
            found["gateway: doubled"] += more.total()
            found["gateway: misplaced"] += not missing and not more and stored != sent
        found["gateway: changed or invalid prompts"] = len(agent.provider.problems)
        found["gateway: never compacted"] += agent.mode == "compact" and not agent.provider.compacted
    return found


def _recorded(api: Api, session: str) -> list[bytes]:
    """Return the messages of a session in order, each as JSON."""
    status, _ = api.call("GET", f"sessions/{session}/")
    if status != 200:
        return []
    turns, cursor = [], ""
    while True:
        page = api.get(f"sessions/{session}/turns/?limit=50{cursor}")
        turns += page["data"]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={quote(page['next_cursor'])}"
    turns.sort(key=lambda turn: turn["turn"])
    return [orjson.dumps(message) for turn in turns for message in turn["messages"]]
