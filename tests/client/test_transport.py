"""Retries, errors and requests of the client's transport."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import nullcontext

import pytest
from contextapp_client import (
    ApiError,
    Conflict,
    ConnectionFailed,
    NotFound,
    RateLimited,
    ServerError,
    Unavailable,
    UnexpectedResponse,
)

from sessions.api import errors as server_errors
from tests.client.both import Connect
from tests.client.flaky import DROPPED, Canned, FlakyServer, refusal

Flaky = Callable[..., FlakyServer]
BUSY = refusal(503, "unavailable", "unavailable", Retry_After="0")
PUSHED = Canned(status=201, body={"turn": 0})
HALF = Canned(body={"turn": 0}, cut=1)
RETRY_AFTER = ("17", "Wed, 21 Oct 2015 07:28:00 GMT", "soon")


@pytest.mark.parametrize("path", ["", "/", "/api/v1", "/api/v1/"])
def test_the_url_may_be_that_of_the_server_or_of_its_api(flaky: Flaky, path: str, connect: Connect) -> None:
    server = flaky(PUSHED)
    connect(server.url + path, "ctx_key").session("s").push([{"role": "user", "content": "hi"}])
    [(_, requested, _, _)] = server.seen
    assert requested == "/api/v1/sessions/s/turns/"


class TestRetries:
    @pytest.mark.slow
    @pytest.mark.parametrize("failure", [BUSY, DROPPED, HALF, Canned(status=502, body=b"<html>")])
    def test_a_push_is_retried_with_the_same_key(
        self, flaky: Flaky, failure: object, connect: Connect
    ) -> None:
        server = flaky(failure, failure, PUSHED)
        assert connect(server.url).session("s").push([{"role": "user", "content": "hi"}]) == {"turn": 0}
        keys = {headers["Idempotency-Key"] for _, _, headers, _ in server.seen}
        assert len(server.seen) == 3
        assert len(keys) == 1

    @pytest.mark.slow
    def test_a_deletion_whose_response_was_lost_has_succeeded(self, flaky: Flaky, connect: Connect) -> None:
        missing = refusal(404, "not_found", "not_found")
        server = flaky(DROPPED, missing)
        connect(server.url).session("s").delete()
        assert len(server.seen) == 2
        with pytest.raises(NotFound):
            connect(flaky(BUSY, missing).url).session("s").delete()

    def test_each_push_has_a_key_unless_given(self, flaky: Flaky, connect: Connect) -> None:
        server = flaky(PUSHED)
        session = connect(server.url).session("s")
        for key in (None, None, "mine"):
            session.push([{"role": "user", "content": "hi"}], idempotency_key=key)
        keys = [headers["Idempotency-Key"] for _, _, headers, _ in server.seen]
        assert len(set(keys)) == 3
        assert keys[2] == "mine"

    def test_the_key_of_a_push_that_failed_is_sent_again_with_the_same_turn(
        self, flaky: Flaky, connect: Connect
    ) -> None:
        server = flaky(DROPPED, PUSHED, DROPPED, PUSHED, PUSHED)
        session = connect(server.url, retries=0).session("s")
        for text, fails in (("a", True), ("a", False), ("a", True), ("b", False), ("a", False)):
            with pytest.raises(ConnectionFailed) if fails else nullcontext():
                session.push([{"role": "user", "content": text}])
        first, again, lost, other, new = (headers["Idempotency-Key"] for _, _, headers, _ in server.seen)
        assert first == again
        assert len({first, lost, other, new}) == 4

    def test_a_fetch_is_retried(self, flaky: Flaky, connect: Connect) -> None:
        server = flaky(DROPPED, BUSY, Canned(body={"external_id": "s"}))
        assert connect(server.url).session("s").info() == {"external_id": "s"}

    def test_an_unsafe_request_is_not_retried(self, flaky: Flaky, connect: Connect) -> None:
        server = flaky(DROPPED, Canned())
        with pytest.raises(ConnectionFailed):
            connect(server.url).session("s").compact()
        assert len(server.seen) == 1

    def test_a_conflict_is_not_retried(self, flaky: Flaky, connect: Connect) -> None:
        server = flaky(refusal(409, "conflict", "stale_turn"), PUSHED)
        with pytest.raises(Conflict) as caught:
            connect(server.url).session("s").push([{"role": "user", "content": "hi"}], expected_turn=4)
        assert caught.value.code == "stale_turn"
        assert len(server.seen) == 1

    def test_it_gives_up(self, flaky: Flaky, connect: Connect) -> None:
        server = flaky(BUSY)
        with pytest.raises(Unavailable):
            connect(server.url, retries=2).session("s").info()
        assert len(server.seen) == 3

    def test_a_rate_limit_has_retry_after(self, flaky: Flaky, connect: Connect) -> None:
        server = flaky(refusal(429, "rate_limited", "rate_limited", Retry_After="17"))
        with pytest.raises(RateLimited) as caught:
            connect(server.url, retries=0).session("s").info()
        assert caught.value.retry_after == 17

    def test_it_waits_for_retry_after(
        self, flaky: Flaky, monkeypatch: pytest.MonkeyPatch, connect: Connect
    ) -> None:
        """A date is in the past, so the client does not wait for it."""
        waited: list[float] = []

        async def sleep(seconds: float) -> None:
            waited.append(seconds)

        monkeypatch.setattr("time.sleep", waited.append)
        monkeypatch.setattr("asyncio.sleep", sleep)
        answers = [refusal(429, "rate_limited", "rate_limited", Retry_After=each) for each in RETRY_AFTER]
        connect(flaky(*answers, Canned()).url).session("s").info()
        seconds, invalid = (each for each in waited if each)
        assert 17 <= seconds < 20  # with jitter
        assert 0 < invalid < 1  # the usual delay


class TestErrors:
    def test_no_server(self, connect: Connect) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with pytest.raises(ConnectionFailed):
            connect(f"http://127.0.0.1:{port}", "ctx_key", retries=0).session("s").info()

    def test_a_server_that_hangs(self, flaky: Flaky, connect: Connect) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            with pytest.raises(ConnectionFailed):
                connect(url, "ctx_key", retries=0, timeout=0.1).session("s").info()

    @pytest.mark.parametrize("status", [200, 500])
    def test_an_unexpected_response(self, flaky: Flaky, status: int, connect: Connect) -> None:
        with pytest.raises(UnexpectedResponse):
            connect(flaky(Canned(status=status, body=b"<html>proxy</html>")).url).session("s").info()

    def test_an_invalid_prompt(self, flaky: Flaky, connect: Connect) -> None:
        with pytest.raises(UnexpectedResponse):
            connect(flaky(Canned(body={"messages": []})).url).session("s").prompt()

    def test_a_server_error(self, flaky: Flaky, connect: Connect) -> None:
        with pytest.raises(ServerError):
            connect(flaky(refusal(500, "internal_error", "internal_error")).url).session("s").info()

    def test_every_error_type_has_a_class(self) -> None:
        ours = {kind.type: kind.__name__ for kind in ApiError.__subclasses__()}
        theirs = {kind.type: kind.__name__ for kind in server_errors.ApiError.__subclasses__()}
        assert ours == {**theirs, "internal_error": "ServerError"}


class TestRequests:
    def test_ids_and_queries_are_quoted(self, flaky: Flaky, connect: Connect) -> None:
        server = flaky(Canned(body={"data": [], "next_cursor": None}))
        list(connect(server.url).session("a b/ü").search("x & y"))
        assert server.seen[0][1] == "/api/v1/sessions/a%20b%2F%C3%BC/search/?q=x+%26+y"

    def test_the_key_is_sent(self, flaky: Flaky, connect: Connect) -> None:
        server = flaky(Canned())
        connect(server.url).session("s").info()
        assert server.seen[0][2]["Authorization"] == "Bearer ctx_key"

    def test_lists_follow_their_cursors(self, flaky: Flaky, connect: Connect) -> None:
        pages = [{"data": [1, 2], "next_cursor": "more"}, {"data": [3], "next_cursor": None}]
        server = flaky(*(Canned(body=page) for page in pages))
        assert list(connect(server.url).sessions(tag="nightly")) == [1, 2, 3]
        assert [path.partition("?")[2] for _, path, _, _ in server.seen] == [
            "tag=nightly",
            "tag=nightly&cursor=more",
        ]

    def test_a_redirect_is_not_a_success(self, flaky: Flaky, connect: Connect) -> None:
        session = connect(flaky(Canned(status=301, headers={"Location": "https://new/"})).url).session("s")
        for call in (session.delete, session.info):
            with pytest.raises(UnexpectedResponse, match="https://new/"):
                call()

    def test_text_is_sent_as_utf8_and_a_lone_surrogate_as_an_escape(
        self, flaky: Flaky, connect: Connect
    ) -> None:
        server = flaky(PUSHED)
        connect(server.url).session("s").push([{"role": "user", "content": "ü\udc80"}])
        body = server.seen[0][3]
        assert "ü".encode() in body
        assert json.loads(body)["messages"][0]["content"] == "ü\udc80"

    def test_an_unsupported_object_is_rejected_before_sending(self, flaky: Flaky, connect: Connect) -> None:
        server = flaky(PUSHED)
        with pytest.raises(TypeError, match="object"):
            connect(server.url).session("s").push([{"role": "user", "content": object()}])
        assert not server.seen

    def test_creating_a_session_object_sends_nothing(self, flaky: Flaky, connect: Connect) -> None:
        server = flaky(Canned())
        assert connect(server.url).session("s").id == "s"
        assert not server.seen

    def test_a_key_may_be_the_content_of_a_file_that_ends_with_a_newline(
        self, flaky: Flaky, connect: Connect
    ) -> None:
        server = flaky(Canned())
        connect(server.url, "ctx_key\n").session("s").info()
        assert server.seen[0][2]["Authorization"] == "Bearer ctx_key"

    @pytest.mark.parametrize(("key", "reason"), [("", "empty"), (None, "empty"), ("ctx_…", "placeholder")])
    def test_a_missing_key_is_reported_at_once(self, key: str, reason: str, connect: Connect) -> None:
        with pytest.raises(ValueError, match=f"`api_key` is .*{reason}"):
            connect("http://127.0.0.1:8000", key)

    @pytest.mark.parametrize("url", ["", None, "127.0.0.1:8000", "localhost:8000"])
    def test_a_url_without_a_scheme_is_reported_at_once(self, url: str, connect: Connect) -> None:
        with pytest.raises(ValueError, match="must begin with `http://`"):
            connect(url)
