"""Observe mode: the same bytes in both directions, with every header, status and failure."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import logging
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from accounts.models import Project
from accounts.services.gateway import gateway_update, provider_secret_set
from sessions.models import AgentSession
from tests.gateway.anthropic_talk import STREAM, request, stream, streamed, text, whole
from tests.gateway.double import Provider, Reply
from tests.gateway.running import PATIENCE, Running

MESSAGES = "/anthropic/v1/messages?beta=true"

#: A body that a JSON library would write differently: spacing, numbers, escapes, key order, unknown fields.
ODD = (
    '{ "stream":true,"messages" : [ {"role":"user","content":"caf\\u00e9 – 日本"} ],\n\t"temperature":1.0,'
    '"big":12345678901234567890,"max_tokens":1e3,"unknown_field":{"b":1,"a":[ ]},"model":"claude-x" }'
).encode()


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def headers(key: str, **more: str) -> dict[str, str]:
    named = {name.replace("_", "-"): value for name, value in more.items()}
    return {"x-contextapp-key": key, "x-api-key": "sk-ant-secret", **named}


@pytest.mark.parametrize(
    "reply", [streamed(text("Größe – 日本語 🎉")), whole(text("Hi"))], ids=["stream", "json"]
)
def test_bodies_pass_unchanged(gateway: Running, provider: Provider, api_key: str, reply: Reply) -> None:
    provider.script = [reply]
    response = gateway.call(MESSAGES, ODD, headers(api_key, anthropic_version="2023-06-01"))
    [received] = provider.received
    assert (received.method, received.path) == ("POST", "/v1/messages?beta=true")
    assert sha(received.body) == sha(ODD)
    assert sha(response.body) == sha(b"".join(reply.parts))
    assert response.status == 200


def test_headers_pass_but_for_those_of_the_connection_and_ours(
    gateway: Running, provider: Provider, api_key: str
) -> None:
    provider.script = [
        Reply(
            headers=[
                *STREAM,
                (b"retry-after", b"7"),
                (b"x-should-retry", b"false"),
                (b"connection", b"x-hop"),
                (b"x-hop", b"1"),
            ]
        )
    ]
    sent = headers(
        api_key,
        user_agent="claude-cli/2.1.233 (external, cli)",
        anthropic_beta="a-2026-01-01,b-2026-01-02",
        x_stainless_retry_count="0",
        accept_encoding="gzip, br, zstd",
        x_unheard_of="é".encode().decode("latin-1"),
        connection="keep-alive, x-private",
        x_private="1",
        x_contextapp_mode="observe",
    )
    response = gateway.call(MESSAGES, b"{}", sent)
    received = dict(provider.received[0].headers)
    dropped = {b"x-contextapp-key", b"x-contextapp-mode", b"connection", b"x-private"}
    expected = {name.encode(): value.encode("latin-1") for name, value in sent.items()}
    assert {name: value for name, value in received.items() if name not in {b"host", b"content-length"}} == {
        name: value for name, value in expected.items() if name not in dropped
    }
    assert received[b"host"] == provider.url.removeprefix("http://").encode()
    assert (response.headers["retry-after"], response.headers["x-should-retry"]) == ("7", "false")
    assert response.headers["request-id"] == "req_1"
    assert response.headers["x-contextapp"] == "observe"
    assert "x-hop" not in response.headers
    assert api_key not in str(provider.received)


def test_a_browser_shares_no_cookies_and_runs_no_scripts(
    gateway: Running, provider: Provider, api_key: str
) -> None:
    """A member could open a link to the URL of another project's provider."""
    html = [
        (b"content-type", b"text/html"),
        (b"set-cookie", b"sessionid=x"),
        (b"clear-site-data", b'"cookies"'),
    ]
    provider.script = [Reply(headers=html, parts=[b"<script>fetch('/p/default/')</script>"])]
    path = f"/k/{api_key}/anthropic/page"
    response = gateway.call(path, None, {"cookie": "sessionid=secret; csrftoken=secret"}, method="GET")
    assert "secret" not in str(provider.received)
    assert response.headers.keys().isdisjoint({"set-cookie", "clear-site-data"})
    assert response.headers["content-security-policy"] == "sandbox"


@pytest.mark.parametrize("status", [400, 401, 404, 413, 429, 500, 529])
def test_errors_of_the_provider_pass_verbatim(
    gateway: Running, provider: Provider, api_key: str, status: int
) -> None:
    body = b'{"type":"error", "error":{"type":"invalid_request_error","message":"messages.1: Invalid"}}'
    provider.script = [Reply(status=status, parts=[body])]
    response = gateway.call(MESSAGES, b"{}", headers(api_key))
    assert (response.status, response.body) == (status, body)


def test_an_error_that_cannot_be_decoded_passes_in_compact_mode(
    gateway: Running, provider: Provider, api_key: str
) -> None:
    encoding = [(b"content-type", b"application/json"), (b"content-encoding", b"gzip")]
    provider.script = [Reply(status=400, headers=encoding, parts=[b"not gzip"])]
    sent = headers(api_key, x_contextapp_mode="compact")
    response = gateway.call(MESSAGES, request({"role": "user", "content": "Hi"}), sent)
    assert (response.status, response.body) == (400, b"not gzip")


def test_long_response_headers_pass(gateway: Running, provider: Provider, api_key: str) -> None:
    long = {f"x-debug-{number}": "x" * 60_000 for number in range(5)}
    provider.script = [Reply(headers=[(name.encode(), value.encode()) for name, value in long.items()])]
    response = gateway.call(MESSAGES, b"{}", headers(api_key))
    assert response.status == 200
    assert long.items() <= response.headers.items()


def test_redirects_of_the_provider_are_not_followed(
    gateway: Running, provider: Provider, api_key: str
) -> None:
    provider.script = [Reply(status=307, headers=[(b"location", provider.url.encode() + b"/elsewhere")])]
    response = gateway.call(MESSAGES, b"{}", headers(api_key))
    assert (response.status, len(provider.received)) == (307, 1)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/anthropic/v1/messages/count_tokens?beta=true"),
        ("GET", "/anthropic/v1/models?limit=1000"),
        ("POST", "/openai/v1/responses/compact"),
        ("POST", "/openai/v1/embeddings"),
        ("GET", "/openai/v1/models"),
        ("DELETE", "/openai/v1/files/a%2Fb%20c"),
    ],
)
def test_other_endpoints_pass_too(
    gateway: Running, provider: Provider, api_key: str, method: str, path: str
) -> None:
    provider.script = [Reply(parts=[b'{"input_tokens": 12}'])]
    response = gateway.call(path, b"{}" if method == "POST" else None, headers(api_key), method=method)
    assert response.body == b'{"input_tokens": 12}'
    assert (provider.received[0].method, provider.received[0].path) == (
        method,
        "/" + path.partition("/v1/")[1].strip("/") + "/" + path.partition("/v1/")[2],
    )


@pytest.mark.parametrize(
    "path", ["/v1/../v1/models", "/v1/{id}", "/v1//a;b=%7e%2F/?x='a|b'&y={c}", "/v1/files/a%C3%A9/"]
)
def test_urls_pass_unchanged(gateway: Running, provider: Provider, api_key: str, path: str) -> None:
    assert gateway.call(f"/anthropic{path}", None, headers(api_key), method="GET").status == 200
    assert provider.received[0].path == path


@pytest.mark.parametrize(
    ("path", "received"),
    [
        ("/anthropic/messages?beta=true", "/v1/messages?beta=true"),
        ("/anthropic/v1/v1/messages", "/v1/messages"),
        ("/openai/chat/completions", "/v1/chat/completions"),
        ("/openai/responses/", "/v1/responses/"),
        ("/openai/v1/v1/responses", "/v1/responses"),
    ],
)
def test_base_urls_work_with_and_without_the_version(
    gateway: Running, provider: Provider, api_key: str, path: str, received: str
) -> None:
    sent = {"role": "user", "content": "Hi"}
    body = request(sent) if path.startswith("/anthropic") else request(sent, model="gpt-5", input=[sent])
    provider.script = [whole(text("Hi"))]
    assert gateway.call(path, body, headers(api_key)).status == 200
    assert provider.received[0].path == received
    gateway.settle()
    assert AgentSession.objects.get().turn_count == 1


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("mode", "compakt"),
        ("bypass", "yes"),
        ("budget", "60k"),
        ("budget", "60,000"),
        ("budget", "0"),
        ("budget", "9" * 5_000),
    ],
)
def test_a_setting_that_is_misspelled_is_refused_with_its_name(
    gateway: Running, provider: Provider, api_key: str, header: str, value: str
) -> None:
    response = gateway.call(MESSAGES, ODD, headers(api_key, **{f"x-contextapp-{header}": value}))
    error = json.loads(response.body)["error"]
    assert (response.status, error["type"]) == (400, "invalid_request_error")
    assert f"X-Contextapp-{header.title()}" in error["message"]
    assert response.headers["x-contextapp"] == "refused"
    assert not provider.received


def test_clients_do_not_repeat_a_request_that_the_gateway_refuses(gateway: Running, api_key: str) -> None:
    """Claude Code repeats requests with status 401 for minutes, unless a header forbids it."""
    response = gateway.call(MESSAGES, ODD, headers(f"{api_key}x"))
    assert (response.status, response.headers["x-should-retry"]) == (401, "false")


def test_a_url_that_is_not_ascii_is_refused(gateway: Running, provider: Provider, api_key: str) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=PATIENCE) as connection:
        sent = f"GET /gateway/anthropic/v1/é HTTP/1.1\r\nHost: x\r\nX-Contextapp-Key: {api_key}\r\n\r\n"
        connection.sendall(sent.encode())
        assert connection.recv(1_000).startswith(b"HTTP/1.1 400 ")
    assert provider.received == []


def test_a_head_request_passes(gateway: Running, provider: Provider, api_key: str) -> None:
    provider.script = [Reply(status=404, headers=[(b"content-length", b"0")], parts=[])]
    assert gateway.call("/anthropic/api/hello", None, headers(api_key), method="HEAD").status == 404


def test_compressed_bodies_pass_unread(gateway: Running, provider: Provider, api_key: str) -> None:
    sent, answered = gzip.compress(request({"role": "user", "content": "Hi"})), gzip.compress(b'{"a": 1}')
    reply_headers = [(b"content-type", b"application/json"), (b"content-encoding", b"gzip")]
    provider.script = [Reply(headers=reply_headers, parts=[answered])] * 2
    response = gateway.call(MESSAGES, sent, headers(api_key, content_encoding="gzip"))
    assert (provider.received[0].body, response.body) == (sent, answered)
    unknown = gateway.call(MESSAGES, b"\0\1", headers(api_key, content_encoding="snappy"))
    assert (provider.received[1].body, unknown.status) == (b"\0\1", 200)


def test_events_arrive_one_by_one(gateway: Running, provider: Provider, api_key: str) -> None:
    go, parts = threading.Event(), stream(text("One after the other."))
    provider.script = [Reply(headers=STREAM, parts=parts, go=go)]
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE)
    connection.request("POST", f"/gateway{MESSAGES}", b"{}", headers(api_key))
    response = connection.getresponse()
    assert response.read1(65_536) == parts[0]  # the provider waits before its second event
    go.set()
    assert response.read() == b"".join(parts[1:])


def test_a_long_rejection_passes_before_it_is_complete(
    gateway: Running, provider: Provider, api_key: str
) -> None:
    """In compact mode, rejections are read first, but an endless one must not fill the memory."""
    go, parts = threading.Event(), [b"x" * (2**20 + 1), b"the end"]
    provider.script = [Reply(status=400, parts=parts, go=go)]
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE)
    sent = request({"role": "user", "content": "Hi"})
    connection.request("POST", f"/gateway{MESSAGES}", sent, headers(api_key, x_contextapp_mode="compact"))
    response = connection.getresponse()
    assert (response.status, response.read(len(parts[0]))) == (400, parts[0])
    go.set()
    assert response.read() == parts[1]


@pytest.mark.slow
def test_a_body_of_32_megabytes_passes(gateway: Running, provider: Provider, api_key: str) -> None:
    body = request({"role": "user", "content": "x" * 32_000_000})
    assert gateway.call(MESSAGES, body, headers(api_key)).status == 200
    assert sha(provider.received[0].body) == sha(body)


def test_a_response_that_is_cut_is_cut_for_the_client_too(
    gateway: Running, provider: Provider, api_key: str, caplog: pytest.LogCaptureFixture
) -> None:
    parts = stream(text("Never ends"))[:3]
    provider.script = [Reply(headers=STREAM, parts=parts, cut=True)]
    server = logging.getLogger("_granian.utils")  # does not propagate
    server.addHandler(caplog.handler)
    with pytest.raises(http.client.IncompleteRead) as caught:
        gateway.call(MESSAGES, request({"role": "user", "content": "Go on"}), headers(api_key))
    server.removeHandler(caplog.handler)
    assert caught.value.partial == b"".join(parts)
    size = len(b"".join(parts))
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        f"127.0.0.1 ended its response early, after {size} bytes: RemoteProtocolError."
    ]


def test_a_response_that_is_cut_before_its_body(gateway: Running, provider: Provider, api_key: str) -> None:
    provider.script = [Reply(parts=[], cut=True)]
    response = gateway.call(MESSAGES, b"{}", headers(api_key))
    assert (response.status, response.headers["x-contextapp"]) == (502, "observe")
    assert b"The gateway received no response from 127.0.0.1: RemoteProtocolError." in response.body


def test_a_provider_that_cannot_be_reached(gateway: Running, provider: Provider, api_key: str) -> None:
    provider.__exit__()
    response = gateway.call(MESSAGES, b"{}", headers(api_key))
    assert response.status == 502
    assert b'"type": "api_error"' in response.body
    assert b"The gateway cannot connect to 127.0.0.1: [Errno " in response.body


def test_a_disconnect_cancels_the_request_to_the_provider(
    gateway: Running, provider: Provider, api_key: str
) -> None:
    reply = Reply(headers=STREAM, parts=stream(text("Nobody listens")), go=threading.Event())
    provider.script = [reply]
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE)
    connection.request("POST", f"/gateway{MESSAGES}", b"{}", headers(api_key))
    response = connection.getresponse()
    response.read1(10)
    response.close()
    connection.close()
    assert provider.cancelled.wait(PATIENCE)


class TestCredentials:
    def test_without_a_key_nothing_is_forwarded(self, gateway: Running, provider: Provider) -> None:
        response = gateway.call(MESSAGES, b"{}", {"x-api-key": "sk-ant-secret"})
        assert response.status == 401
        assert b'"authentication_error"' in response.body
        assert provider.received == []

    @pytest.mark.parametrize("key", ["ctx_0000_wrong", "nonsense"])
    def test_a_wrong_key(self, gateway: Running, provider: Provider, key: str) -> None:
        assert gateway.call(MESSAGES, b"{}", headers(key)).status == 401
        assert provider.received == []

    def test_the_key_may_be_in_the_url(self, gateway: Running, provider: Provider, api_key: str) -> None:
        sent = {"authorization": "Bearer sk-ant-oat01-token"}
        assert gateway.call(f"/k/{api_key}{MESSAGES}", b"{}", sent).status == 200
        assert provider.received[0].path == "/v1/messages?beta=true"
        assert provider.received[0].header("authorization") == "Bearer sk-ant-oat01-token"

    @pytest.mark.parametrize("name", ["x-api-key", "authorization"])
    def test_our_key_in_place_of_the_providers_is_swapped(
        self, gateway: Running, provider: Provider, api_key: str, project: Project, name: str
    ) -> None:
        provider_secret_set(project=project, provider="anthropic", secret="sk-ant-of-the-project")
        value = api_key if name == "x-api-key" else f"Bearer {api_key}"
        assert gateway.call(MESSAGES, b"{}", {name: value}).status == 200
        assert provider.received[0].header("x-api-key") == "sk-ant-of-the-project"
        assert api_key not in str(provider.received)

    def test_without_a_provider_key_a_swap_is_refused(
        self, gateway: Running, provider: Provider, api_key: str
    ) -> None:
        response = gateway.call("/openai/v1/chat/completions", b"{}", {"authorization": f"Bearer {api_key}"})
        assert response.status == 401
        assert b"has no OpenAI API key" in response.body
        assert provider.received == []

    def test_provider_keys_are_encrypted(self, project: Project, db: None) -> None:
        provider_secret_set(project=project, provider="anthropic", secret="sk-ant-of-the-project")
        project.refresh_from_db()
        assert "sk-ant" not in str(project.provider_secrets)
        assert "sk-ant" not in str(list(project.audit_events.values()))


class TestProjectSettings:
    @pytest.mark.parametrize(
        ("root", "called", "received"),
        [
            ("/proxy", MESSAGES, "/proxy/v1/messages?beta=true"),
            ("/proxy/v1/", MESSAGES, "/proxy/v1/messages?beta=true"),
            ("/paas/v4", "/anthropic/messages", "/paas/v4/messages"),
        ],
    )
    def test_the_address_of_a_provider(
        self,
        gateway: Running,
        provider: Provider,
        api_key: str,
        project: Project,
        settings: Any,
        root: str,
        called: str,
        received: str,
    ) -> None:
        settings.CONTEXTAPP_GATEWAY_ALLOW_PRIVATE = True
        with Provider() as other:
            gateway_update(project=project, changes={"upstreams": {"anthropic": f"{other.url}{root}"}})
            assert gateway.call(called, b"{}", headers(api_key)).status == 200
            assert other.received[0].path == received
        assert provider.received == []

    def test_an_address_in_the_own_network_is_not_called(
        self, gateway: Running, provider: Provider, api_key: str, project: Project
    ) -> None:
        gateway_update(project=project, changes={"upstreams": {"anthropic": provider.url}})
        assert gateway.call(MESSAGES, b"{}", headers(api_key)).status == 502
        assert provider.received == []

    @pytest.mark.skipif(sys.platform != "linux", reason="macOS does not listen on 127.0.0.2")
    @pytest.mark.parametrize("name", ["rebound.example.com", "xn--rebnden-p2a.example.com"])
    def test_a_name_that_resolves_to_another_address_later_is_called_at_the_first(
        self, gateway: Running, api_key: str, project: Project, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Not even a connection is opened to the private address: its failure would be reported."""
        with socket.create_server(("127.0.0.2", 0)) as outside:
            port = outside.getsockname()[1]
            answers = iter(["127.0.0.2"])
            resolve = socket.getaddrinfo

            def rebound(host: Any, *more: Any, **options: Any) -> Any:
                if host not in {name, name.encode()}:
                    return resolve(host, *more, **options)
                if options.get("flags", 0) & socket.AI_NUMERICHOST:
                    raise socket.gaierror
                return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers, "127.0.0.1"), port))]

            monkeypatch.setattr(socket, "getaddrinfo", rebound)
            monkeypatch.setattr("gateway.network.is_public", lambda address: address == "127.0.0.2")
            upstreams = {"anthropic": f"https://{name}:{port}"}
            gateway_update(project=project, changes={"upstreams": upstreams})
            with ThreadPoolExecutor() as threads, socket.create_server(("127.0.0.1", port)) as inside:
                outside.settimeout(PATIENCE)
                inside.setblocking(False)
                response = threads.submit(gateway.call, MESSAGES, b"{}", headers(api_key))
                connection, _ = outside.accept()
                connection.close()
                assert response.result().status == 502
                with pytest.raises(BlockingIOError):
                    inside.accept()

    @pytest.mark.parametrize("allowed", [True, False])
    def test_usage_of_chat_streams_is_requested_only_if_the_project_allows_it(
        self, gateway: Running, provider: Provider, api_key: str, project: Project, allowed: bool
    ) -> None:
        gateway_update(project=project, changes={"adds_usage": allowed})
        sent = {"x-contextapp-key": api_key, "authorization": "Bearer sk"}
        body = b'{ "model": "gpt-5", "stream": true, "messages": [] }'
        gateway.call("/openai/v1/chat/completions", body, sent)
        inserted = b'"stream_options":{"include_usage":true},' if allowed else b""
        assert provider.received[0].body == b"{" + inserted + body[1:]
        own = b'{"stream": true, "stream_options": {}, "messages": []}'
        gateway.call("/openai/v1/chat/completions", own, sent)
        assert provider.received[1].body == own


@pytest.mark.slow
def test_a_client_that_is_still_sending_sees_why_its_request_is_refused(
    gateway: Running, api_key: str
) -> None:
    sent = b"x" * 20_000_000
    assert gateway.call(MESSAGES, sent, headers("ctx_0000_wrong")).status == 401
    assert gateway.call(MESSAGES, sent * 4, headers(api_key)).status == 413


@pytest.mark.parametrize(("path", "status"), [("/mistral/v1/chat", 404), ("/", 404), ("/../healthz", 404)])
def test_other_paths_are_not_served(gateway: Running, provider: Provider, path: str, status: int) -> None:
    assert gateway.call(path, b"{}").status == status
    assert provider.received == []


def test_websockets_are_refused_so_that_clients_fall_back(
    gateway: Running, provider: Provider, api_key: str
) -> None:
    upgrade = headers(api_key, connection="Upgrade", upgrade="websocket")
    assert gateway.call("/openai/v1/responses", None, upgrade, method="GET").status == 426


def test_an_offer_of_http_2_is_ignored(gateway: Running, provider: Provider, api_key: str) -> None:
    offer = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAEAAEAAAAIAAAAB"}
    response = gateway.call(MESSAGES, ODD, headers(api_key) | offer)
    [received] = provider.received
    assert (response.status, received.body) == (200, ODD)
    assert not {b"connection", b"upgrade", b"http2-settings"} & dict(received.headers).keys()
