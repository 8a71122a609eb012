"""Unusual requests to the web server: chunked, slow, truncated, too large."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from django.db import transaction
from django.db.models.signals import post_save

from compaction.deadline import Deadline, check_deadline
from contextapp import request_limits
from contextapp.request_bodies import Bodies
from contextapp.request_limits import request_limited
from contextapp.web import Application
from sessions.models import Compaction
from tests.api.client import Api
from tests.api.talk import request, whole_turn
from tests.asynchronous import run

TIMEOUT = 30
LOG = b'{"messages":[{"role":"user","content":"one"},{"role":"user","content":"two"}]}\n'


@pytest.fixture
def api_url(served_url: str) -> str:
    return f"{served_url}/api/v1"


@pytest.fixture
def client(api_key: str) -> Iterator[requests.Session]:
    with requests.Session() as client:
        client.headers["Authorization"] = f"Bearer {api_key}"
        client.headers["Content-Type"] = "application/json"
        yield client


def chunks(body: dict[str, Any]) -> Iterator[bytes]:
    """Yield the body in two parts, which makes `requests` send it in chunks."""
    data = json.dumps(body).encode()
    yield data[:5]
    yield data[5:]


def test_chunked_bodies_are_read(api_url: str, client: requests.Session) -> None:
    made = client.post(f"{api_url}/sessions/", data=chunks({"id": "chunked"}), timeout=TIMEOUT)
    assert made.json()["external_id"] == "chunked"
    address = f"{api_url}/sessions/chunked"
    for number in range(3):
        body = {"messages": whole_turn(number)}
        assert client.post(f"{address}/turns/", data=chunks(body), timeout=TIMEOUT).status_code == 201
    preview = client.post(f"{address}/compact/", data=chunks({"preview": True}), timeout=TIMEOUT)
    assert preview.json()["state"] == "preview"
    assert client.get(f"{address}/compactions/", timeout=TIMEOUT).json()["data"] == []
    headers = {"If-Match": "*"}
    memory = {"task": "Ship it."}
    patched = client.patch(f"{address}/memory/", data=chunks(memory), headers=headers, timeout=TIMEOUT)
    assert patched.json()["memory"]["task"] == "Ship it."


def test_large_chunked_bodies_are_read(api_url: str, client: requests.Session) -> None:
    client.post(f"{api_url}/sessions/", json={"id": "large"}, timeout=TIMEOUT)
    content = "x" * 2_000_000
    body = {"messages": [request(content)]}
    assert client.post(f"{api_url}/sessions/large/turns/", data=chunks(body), timeout=TIMEOUT).ok
    [turn] = client.get(f"{api_url}/sessions/large/turns/", timeout=TIMEOUT).json()["data"]
    assert turn["messages"][0]["content"] == content


@contextmanager
def unfinished(url: str, path: str, *, length: int, sent: bytes, header: str = "") -> Iterator[socket.socket]:
    """Send the first part of a request and yield the connection."""
    address = urlsplit(url)
    framing = f"Content-Length: {length}" if length else "Transfer-Encoding: chunked"
    head = f"POST {path} HTTP/1.1\r\nHost: {address.hostname}\r\n{framing}\r\n{header}\r\n"
    with socket.create_connection((address.hostname, address.port), timeout=TIMEOUT) as connection:
        connection.sendall(head.encode() + sent)
        yield connection


def test_slow_bodies_do_not_delay_other_requests(
    served_url: str, api_url: str, client: requests.Session, api_key: str
) -> None:
    form = f"Cookie: csrftoken={'a' * 32}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    push = f"Authorization: Bearer {api_key}\r\nContent-Type: application/json\r\n"
    slow = {"/login/": form, "/api/v1/sessions/quick/turns/": push}
    client.post(f"{api_url}/sessions/", json={"id": "quick"}, timeout=TIMEOUT)
    with ExitStack() as stack:
        for path, header in [*slow.items()] * 20:
            stack.enter_context(unfinished(served_url, path, length=100, sent=b"a", header=header))
        assert requests.get(f"{served_url}/healthz", timeout=TIMEOUT).status_code == 200
        pushed = client.post(
            f"{api_url}/sessions/quick/turns/", json={"messages": [request()]}, timeout=TIMEOUT
        )
        assert pushed.status_code == 201


@pytest.mark.parametrize("chunked", [False, True])
def test_an_upload_that_is_cut_off_is_not_imported(
    api_url: str, served_url: str, client: requests.Session, api_key: str, chunked: bool
) -> None:
    header = f"Authorization: Bearer {api_key}\r\nContent-Type: application/octet-stream\r\n"
    sent = b"%x\r\n%b\r\n" % (len(LOG), LOG) if chunked else LOG
    length = 0 if chunked else 2 * len(LOG)
    with unfinished(served_url, "/api/v1/imports/", length=length, sent=sent, header=header) as connection:
        connection.shutdown(socket.SHUT_WR)
        connection.recv(100)
    assert client.get(f"{api_url}/sessions/", timeout=TIMEOUT).json()["data"] == []


@pytest.mark.parametrize(("key", "size", "status"), [("wrong", 4_000_000, 401), ("", 20_000_000, 413)])
def test_early_errors_reach_the_client(api_url: str, api_key: str, key: str, size: int, status: int) -> None:
    headers = {"Authorization": f"Bearer {key or api_key}"}
    body = {"id": "x" * size}
    answer = requests.post(f"{api_url}/sessions/", json=body, headers=headers, timeout=TIMEOUT)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


# -- Without a server -----------------------------------------------------------------------------


class Scope:
    http_version, server, client, scheme, method = "1.1", "127.0.0.1:1", "127.0.0.1:2", "http", "POST"
    path, query_string, authority = "/", "", None

    def __init__(self, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Connection:
    """A client that sends these parts of its body and then waits."""

    def __init__(self, *parts: bytes, ends: bool = False) -> None:
        self.parts, self.ends = parts, ends
        self.status = 0
        self.content = b""

    async def __call__(self) -> bytes:
        return b"".join([part async for part in self])

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            yield part
        if not self.ends:
            await asyncio.get_running_loop().create_future()

    def response_bytes(self, status: int, headers: Sequence[tuple[str, str]], content: bytes) -> None:
        self.status, self.content = status, content


def echo(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response("200 OK", [])
    return [environ["CONTENT_LENGTH"].encode(), b" ", environ["wsgi.input"].read(10)]


def served(*requests: tuple[Scope, Connection], **options: Any) -> list[tuple[int, bytes]]:
    application = Application(echo, threads=1, bodies=Bodies(**{"limit": 1_000, **options}))

    async def serve() -> None:
        await asyncio.gather(*(application.__rsgi__(*each) for each in requests))

    run(serve())
    return [(connection.status, connection.content) for _, connection in requests]


@pytest.mark.parametrize(
    ("client", "address"), [("10.0.0.7:2", "10.0.0.7"), ("[2001:db8::7]:2", "2001:db8::7")]
)
def test_the_address_of_the_client(client: str, address: str) -> None:
    def respond(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [environ["REMOTE_ADDR"].encode()]

    scope, connection = Scope(content_length="0"), Connection(ends=True)
    scope.client = client
    application = Application(respond, threads=1, bodies=Bodies(limit=1_000))
    run(application.__rsgi__(scope, connection))
    assert connection.content.decode() == address


def error_code(content: bytes) -> str:
    return str(json.loads(content)["error"]["code"])


@pytest.mark.parametrize("headers", [{"content_length": "5"}, {"transfer_encoding": "chunked"}])
def test_a_body_that_does_not_arrive_in_time_is_rejected(headers: dict[str, str]) -> None:
    [(status, content)] = served((Scope(**headers), Connection(b"ab")), seconds=0.01)
    assert (status, error_code(content)) == (408, "request_timeout")


def test_the_oldest_of_too_many_bodies_is_rejected() -> None:
    slow = [(Scope(content_length="5"), Connection(b"ab")) for _ in range(3)]
    quick = (Scope(content_length="2"), Connection(b"ab", ends=True))
    answers = served(*slow, quick, most=3, seconds=0.2)
    assert [status for status, _ in answers] == [408, 408, 408, 200]


def test_a_body_over_the_limit_is_discarded() -> None:
    parts = [b"x" * 600] * 3
    chunked = (Scope(transfer_encoding="chunked"), Connection(*parts, b"", ends=True))
    declared = (Scope(content_length="1800"), Connection(*parts, b"", ends=True))
    enormous = (Scope(content_length="9000"), Connection())
    endless = (Scope(transfer_encoding="chunked"), Connection(*[b"x" * 600] * 9))
    answers = served(chunked, declared, enormous, endless)
    assert [int(content.split()[0]) for _, content in answers] == [1_800, 1_800, 9_000, 4_200]


@pytest.mark.parametrize("memory", [0, 400_000, 1_000_000])
def test_concurrent_large_bodies_are_received_in_memory_and_on_disk(memory: int) -> None:
    parts = [b"%06d" % number * 50_000 for number in range(2)]
    requests = [
        (Scope(content_length="300000"), Connection(part, *[b""] * (memory < 300_000), ends=True))
        for part in parts
    ]
    sizes = served(*requests, limit=400_000, memory=memory)
    assert sizes == [(200, b"300000 " + part[:10]) for part in parts]


@pytest.mark.django_db
@pytest.mark.parametrize("leaves", [True, False])
def test_a_request_stops_at_its_deadline_or_when_its_client_has_left(
    monkeypatch: pytest.MonkeyPatch, leaves: bool
) -> None:
    statements: list[str] = []

    def work(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        limit = time.monotonic() + 30
        while time.monotonic() < limit:
            check_deadline()
            statements.append("one")
            time.sleep(0.01)
        raise AssertionError("it was not stopped")

    class Leaving(Connection):
        async def client_disconnect(self) -> None:
            if not leaves:
                await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(request_limits, "WATCH_AFTER", 0.05)
    client = Leaving(ends=True)
    application = Application(
        work, threads=1, bodies=Bodies(limit=1_000), request_seconds=60 if leaves else 0.1
    )
    run(application.__rsgi__(Scope(), client))
    assert statements
    assert client.status == 500


def test_a_call_at_its_deadline_changes_nothing(api_key: str, db: None) -> None:
    api = Api(api_key)
    with request_limited(Deadline(-1)):
        response = api.post("sessions/", {"id": "late"})
    assert (response.status_code, error_code(response.content)) == (503, "deadline_exceeded")
    assert api.get("sessions/late/").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_a_call_at_its_deadline_after_the_commit_succeeds(api_key: str) -> None:
    api, deadline = Api(api_key), Deadline(60)

    def leave(**_: Any) -> None:
        transaction.on_commit(deadline.expire)

    api.post("sessions/", {"id": "s1", "format": "anthropic"})
    for number in range(4):
        api.post("sessions/s1/turns/", {"messages": whole_turn(number)})
    assert api.post("sessions/s1/compact/", {"policy": {"target": 0.01}}).json()["state"] == "done"
    post_save.connect(leave, sender=Compaction)
    try:
        with request_limited(deadline):
            response = api.post("sessions/s1/compactions/1/revert/")
    finally:
        post_save.disconnect(leave, sender=Compaction)
    assert (response.status_code, response.json()["state"]) == (200, "reverted")


def test_headers_with_underscores_are_ignored() -> None:
    seen: list[dict[str, Any]] = []

    def remember(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        seen.append(environ)
        start_response("200 OK", [])
        return []

    scope = Scope(cookie="a=1")
    scope.headers |= {"x-real": "1", "x_forwarded_for": "1.2.3.4"}
    run(Application(remember, threads=1, bodies=Bodies(limit=1)).__rsgi__(scope, Connection()))
    assert seen[0]["HTTP_X_REAL"] == "1"
    assert "HTTP_X_FORWARDED_FOR" not in seen[0]
