"""Measure what the gateway adds to a call, and how many streams one process carries.

    python -m bench.gateway                  # about two minutes
    python -m bench.gateway --streams 200

Starts an instance in a temporary folder, in front of a provider double that answers at once with a stream.
The time to the first byte is measured alternately with and without the gateway.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from bench.http import quantiles
from bench.instance import free_port, product

PATH = "/v1/messages?beta=true"
PREFIX = "/gateway/anthropic"
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


WORDS = [f"word {number} " for number in range(20)]


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def events(number: int) -> list[bytes]:
    """Return the events of an answer: some text, and the call of a tool with this number."""
    message = {"id": f"msg_{number}", "model": "claude-sonnet-5-5", "usage": {"input_tokens": 9}}
    block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {}}
    call = {"type": "input_json_delta", "partial_json": '{"path": "a.py"}'}
    return [
        event("message_start", message=message),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        *(
            event("content_block_delta", index=0, delta={"type": "text_delta", "text": word})
            for word in WORDS
        ),
        event("content_block_stop", index=0),
        event("content_block_start", index=1, content_block=block),
        event("content_block_delta", index=1, delta=call),
        event("content_block_stop", index=1),
        event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 60}),
        event("message_stop"),
    ]


class Provider:
    """Answers each request with a stream; with `pause`, events come that many seconds apart."""

    def __init__(self, pause: float = 0.0) -> None:
        self.pause = pause

    async def serve(self, port: int) -> None:
        server = await asyncio.start_server(self.connection, "127.0.0.1", port, limit=2**26, backlog=1_000)
        async with server:
            await server.serve_forever()

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lower = head.lower()
                length = (
                    int(lower.split(b"content-length:")[1].split(b"\r\n")[0])
                    if b"content-length" in lower
                    else 0
                )
                await reader.readexactly(length)
                named = lower.partition(b"x-bench-call:")[2].partition(b"\r\n")[0]
                writer.write(_HEAD)
                for part in events(int(named or b"0")):
                    writer.write(b"%x\r\n%b\r\n" % (len(part), part))
                    if self.pause:
                        await writer.drain()
                        await asyncio.sleep(self.pause)
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def _provider(port: int, pause: float) -> None:
    asyncio.run(Provider(pause).serve(port))


@contextmanager
def provider(pause: float) -> Iterator[int]:
    port = free_port()
    process = get_context("spawn").Process(target=_provider, args=(port, pause), daemon=True)
    process.start()
    wait(port)
    try:
        yield port
    finally:
        process.terminate()


@contextmanager
def instance(upstream: int) -> Iterator[tuple[int, str]]:
    """Start contextapp; yield the port of its gateway and an API key."""
    gateway, url = free_port(), f"http://127.0.0.1:{upstream}"
    with product(free_port(), gateway, CONTEXTAPP_GATEWAY_ANTHROPIC_URL=url) as (home, _):
        yield gateway, (home / "api-key").read_text().strip()


def wait(port: int) -> None:
    for _ in range(1_200):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"nothing listens on port {port}")


class Client:
    """An agent with one connection. `call` returns the milliseconds to the first byte, and to the last."""

    def __init__(self, port: int, prefix: str, headers: dict[str, str]) -> None:
        self.port, self.prefix = port, prefix
        self.headers = "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**26)

    async def call(self, agent: Agent) -> tuple[float, float]:
        body = agent.body()
        start = time.perf_counter()
        self.writer.write(
            f"POST {self.prefix}{PATH} HTTP/1.1\r\nHost: localhost\r\n{self.headers}"
            f"x-bench-call: {agent.number}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await self.reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise SystemExit(head.decode())
        first = 0.0
        while size := int(await self.reader.readline(), 16):
            await self.reader.readexactly(size + 2)
            first = first or (time.perf_counter() - start) * 1_000
        await self.reader.readline()
        return first, (time.perf_counter() - start) * 1_000


class Agent:
    """A history that grows with each call, as an agent sends it."""

    def __init__(self, session: str, lines: int = 40) -> None:
        self.session, self.lines = session, lines
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": f"Read the files of {session}."}]
        self.number = 0

    def body(self) -> bytes:
        tool = {"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}
        fields = {"model": "claude-sonnet-5-5", "max_tokens": 1_000, "stream": True, "tools": [tool]}
        return json.dumps({**fields, "messages": self.messages}).encode()

    def grow(self) -> None:
        """Add the provider's answer and the result of its call."""
        id = f"toolu_{self.number}"
        call = {"type": "tool_use", "id": id, "name": "Read", "input": {"path": "a.py"}}
        output = "\n".join(f"{self.number}.{line} def handler_{line}(): pass" for line in range(self.lines))
        self.messages += [
            {"role": "assistant", "content": [{"type": "text", "text": "".join(WORDS)}, call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": output}]},
        ]
        self.number += 1


async def measure_overhead(direct: int, gateway: int, key: str, *, calls: int, mode: str) -> None:
    """Measure the first byte with and without the gateway, alternately, of one agent whose history grows."""
    headers = {"x-api-key": "sk", "x-session-id": f"bench-{mode}", "X-Contextapp-Key": key}
    headers |= {"X-Contextapp-Mode": mode, "X-Contextapp-Budget": "30000"}
    through, around = Client(gateway, PREFIX, headers), Client(direct, "", {"x-api-key": "sk"})
    await through.open()
    await around.open()
    agent = Agent(mode)
    times: dict[str, list[float]] = {"gateway": [], "direct": []}
    for number in range(calls):
        for name, client in (("direct", around), ("gateway", through)):
            first, _ = await client.call(agent)
            if number >= 10:
                times[name].append(first)
        agent.grow()
        await asyncio.sleep(0.05)  # the agent runs its tool while the call is recorded
    figures = {name: quantiles(values) for name, values in times.items()}
    added = {name: round(figures["gateway"][name] - figures["direct"][name], 2) for name in ("p50", "p95")}
    size = len(agent.body()) // 1_000
    print(f"{mode}: first byte {figures}, added {added} ms, last request {size} KB", flush=True)


async def measure_streams(gateway: int, key: str, *, streams: int) -> None:
    """Measure many streams at once, whose events come 100 ms apart."""
    clients = []
    for number in range(streams):
        headers = {"x-api-key": "sk", "x-session-id": f"stream-{number}", "X-Contextapp-Key": key}
        client = Client(gateway, PREFIX, headers)
        await client.open()
        clients.append((client, Agent(f"stream-{number}")))
    start = time.perf_counter()
    results = await asyncio.gather(*(client.call(agent) for client, agent in clients))
    took = time.perf_counter() - start
    first, last = zip(*results, strict=True)
    ideal = len(events(0)) * 100
    print(f"{streams} streams at once: first byte {quantiles(list(first))} ms,", end=" ")
    print(f"whole stream {quantiles(list(last))} ms (at least {ideal}), all after {took:.2f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=150)
    parser.add_argument("--streams", type=int, default=200)
    arguments = parser.parse_args()
    with provider(0.0) as upstream, instance(upstream) as (gateway, key):
        for mode in ("observe", "compact"):
            asyncio.run(measure_overhead(upstream, gateway, key, calls=arguments.calls, mode=mode))
    with provider(0.1) as upstream, instance(upstream) as (gateway, key):
        asyncio.run(measure_streams(gateway, key, streams=arguments.streams))


if __name__ == "__main__":
    main()
