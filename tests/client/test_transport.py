"""Retries, errors and requests of the client's transport."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable

import pytest
from contextapp_client import (
    ApiError,
    Conflict,
    ConnectionFailed,
    ContextApp,
    NotFound,
    RateLimited,
    ServerError,
    Session,
    Unavailable,
    UnexpectedResponse,
)

from sessions.api import errors as server_errors
from tests.client.flaky import DROPPED, Canned, FlakyServer, refusal

Flaky = Callable[..., FlakyServer]
BUSY = refusal(503, "unavailable", "unavailable", Retry_After="0")
PUSHED = Canned(status=201, body={"turn": 0})


def client(server: FlakyServer, **options: float) -> ContextApp:
    return ContextApp(server.url, "ctx_key", **options)


@pytest.mark.parametrize("path", ["", "/", "/api/v1", "/api/v1/"])
def test_the_url_may_be_that_of_the_server_or_of_its_api(flaky: Flaky, path: str) -> None:
    server = flaky(PUSHED)
    ContextApp(server.url + path, "ctx_key").session("s").push([{"role": "user", "content": "hi"}])
    [(_, requested, _, _)] = server.seen
    assert requested == "/api/v1/sessions/s/turns/"


class TestRetries:
    @pytest.mark.slow
    @pytest.mark.parametrize("failure", [BUSY, DROPPED, Canned(status=502, body=b"<html>")])
    def test_a_push_is_retried_with_the_same_key(self, flaky: Flaky, failure: object) -> None:
        server = flaky(failure, failure, PUSHED)
        assert client(server).session("s").push([{"role": "user", "content": "hi"}]) == {"turn": 0}
        keys = {headers["Idempotency-Key"] for _, _, headers, _ in server.seen}
        assert len(server.seen) == 3
        assert len(keys) == 1

    @pytest.mark.slow
    def test_a_deletion_whose_response_was_lost_has_succeeded(self, flaky: Flaky) -> None:
        missing = refusal(404, "not_found", "not_found")
        server = flaky(DROPPED, missing)
        client(server).session("s").delete()
        assert len(server.seen) == 2
        with pytest.raises(NotFound):
            client(flaky(BUSY, missing)).session("s").delete()

    def test_each_push_has_a_key_unless_given(self, flaky: Flaky) -> None:
        server = flaky(PUSHED)
        session = client(server).session("s")
        for key in (None, None, "mine"):
            session.push([{"role": "user", "content": "hi"}], idempotency_key=key)
        keys = [headers["Idempotency-Key"] for _, _, headers, _ in server.seen]
        assert len(set(keys)) == 3
        assert keys[2] == "mine"

    def test_a_fetch_is_retried(self, flaky: Flaky) -> None:
        server = flaky(DROPPED, BUSY, Canned(body={"external_id": "s"}))
        assert client(server).session("s").info() == {"external_id": "s"}

    def test_an_unsafe_request_is_not_retried(self, flaky: Flaky) -> None:
        server = flaky(DROPPED, Canned())
        with pytest.raises(ConnectionFailed):
            client(server).session("s").compact()
        assert len(server.seen) == 1

    def test_a_conflict_is_not_retried(self, flaky: Flaky) -> None:
        server = flaky(refusal(409, "conflict", "stale_turn"), PUSHED)
        with pytest.raises(Conflict) as caught:
            client(server).session("s").push([{"role": "user", "content": "hi"}], expected_turn=4)
        assert caught.value.code == "stale_turn"
        assert len(server.seen) == 1

    def test_it_gives_up(self, flaky: Flaky) -> None:
        server = flaky(BUSY)
        with pytest.raises(Unavailable):
            client(server, retries=2).session("s").info()
        assert len(server.seen) == 3

    def test_a_rate_limit_has_retry_after(self, flaky: Flaky) -> None:
        server = flaky(refusal(429, "rate_limited", "rate_limited", Retry_After="17"))
        with pytest.raises(RateLimited) as caught:
            client(server, retries=0).session("s").info()
        assert caught.value.retry_after == 17

    def test_it_waits_for_retry_after(self, flaky: Flaky, monkeypatch: pytest.MonkeyPatch) -> None:
        waited: list[float] = []
        monkeypatch.setattr("time.sleep", waited.append)
        server = flaky(refusal(429, "rate_limited", "rate_limited", Retry_After="17"), Canned())
        client(server).session("s").info()
        assert waited == [17]


class TestErrors:
    def test_no_server(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with pytest.raises(ConnectionFailed):
            ContextApp(f"http://127.0.0.1:{port}", "ctx_key", retries=0).session("s").info()

    def test_a_server_that_hangs(self, flaky: Flaky) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            with pytest.raises(ConnectionFailed):
                ContextApp(url, "ctx_key", retries=0, timeout=0.1).session("s").info()

    @pytest.mark.parametrize("status", [200, 500])
    def test_an_unexpected_response(self, flaky: Flaky, status: int) -> None:
        with pytest.raises(UnexpectedResponse):
            client(flaky(Canned(status=status, body=b"<html>proxy</html>"))).session("s").info()

    def test_an_invalid_prompt(self, flaky: Flaky) -> None:
        with pytest.raises(UnexpectedResponse):
            client(flaky(Canned(body={"messages": []}))).session("s").prompt()

    def test_a_server_error(self, flaky: Flaky) -> None:
        with pytest.raises(ServerError):
            client(flaky(refusal(500, "internal_error", "internal_error"))).session("s").info()

    def test_every_error_type_has_a_class(self) -> None:
        ours = {kind.type: kind.__name__ for kind in ApiError.__subclasses__()}
        theirs = {kind.type: kind.__name__ for kind in server_errors.ApiError.__subclasses__()}
        assert ours == {**theirs, "internal_error": "ServerError"}


class TestRequests:
    def test_ids_and_queries_are_quoted(self, flaky: Flaky) -> None:
        server = flaky(Canned(body={"data": [], "next_cursor": None}))
        list(client(server).session("a b/ü").search("x & y"))
        assert server.seen[0][1] == "/api/v1/sessions/a%20b%2F%C3%BC/search/?q=x+%26+y"

    def test_the_key_is_sent(self, flaky: Flaky) -> None:
        server = flaky(Canned())
        client(server).session("s").info()
        assert server.seen[0][2]["Authorization"] == "Bearer ctx_key"

    def test_lists_follow_their_cursors(self, flaky: Flaky) -> None:
        pages = [{"data": [1, 2], "next_cursor": "more"}, {"data": [3], "next_cursor": None}]
        server = flaky(*(Canned(body=page) for page in pages))
        assert list(client(server).sessions(tag="nightly")) == [1, 2, 3]
        assert [path.partition("?")[2] for _, path, _, _ in server.seen] == [
            "tag=nightly",
            "tag=nightly&cursor=more",
        ]

    def test_a_redirect_is_not_a_success(self, flaky: Flaky) -> None:
        session = client(flaky(Canned(status=301, headers={"Location": "https://new/"}))).session("s")
        for call in (session.delete, session.info):
            with pytest.raises(UnexpectedResponse, match="https://new/"):
                call()

    def test_text_is_sent_as_utf8_and_a_lone_surrogate_as_an_escape(self, flaky: Flaky) -> None:
        server = flaky(PUSHED)
        client(server).session("s").push([{"role": "user", "content": "ü\udc80"}])
        body = server.seen[0][3]
        assert "ü".encode() in body
        assert json.loads(body)["messages"][0]["content"] == "ü\udc80"

    def test_an_unsupported_object_is_rejected_before_sending(self, flaky: Flaky) -> None:
        server = flaky(PUSHED)
        with pytest.raises(TypeError, match="object"):
            client(server).session("s").push([{"role": "user", "content": object()}])
        assert not server.seen

    def test_creating_a_session_object_sends_nothing(self, flaky: Flaky) -> None:
        server = flaky(Canned())
        assert isinstance(client(server).session("s"), Session)
        assert not server.seen

    def test_a_key_may_be_the_content_of_a_file_that_ends_with_a_newline(self, flaky: Flaky) -> None:
        server = flaky(Canned())
        ContextApp(server.url, "ctx_key\n").session("s").info()
        assert server.seen[0][2]["Authorization"] == "Bearer ctx_key"

    @pytest.mark.parametrize("key", ["", None])
    def test_a_missing_key_is_reported_at_once(self, key: str) -> None:
        with pytest.raises(ValueError, match="`api_key` is empty"):
            ContextApp("http://127.0.0.1:8000", key)
