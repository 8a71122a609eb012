"""Receivers that respond slowly, or never, delay only their own deliveries."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from http.client import HTTPException

import pytest
from celery import current_app
from django.db import connection
from django.utils import timezone

from accounts.models import Project
from sessions import tasks
from sessions.models import Webhook, WebhookDelivery
from sessions.services import targets
from sessions.services.webhooks import transport
from sessions.services.webhooks.deliveries import deliveries_sweep
from tests.background.world import eventually
from tests.webhooks.receiver import receiver


@contextmanager
def dripping(first: bytes, *, forever: bool) -> Iterator[str]:
    """A receiver that sends `first` at once and then a byte of a header every 0.1 s."""
    done = threading.Event()

    def serve(client: socket.socket) -> None:
        with client:
            client.sendall(first)
            while not done.wait(0.1):
                if forever:
                    client.sendall(b"x")

    def accept(server: socket.socket) -> None:
        while not done.is_set():
            try:
                client, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        finally:
            done.set()


@pytest.fixture(autouse=True)
def private(settings: object) -> None:
    settings.CONTEXTAPP_WEBHOOK_ALLOW_PRIVATE = True  # type: ignore[attr-defined]


def sent(url: str) -> int:
    return transport.post(targets.target_of(url, allow_private=True), secret="s", body=b"{}", headers={})


@pytest.mark.slow
def test_a_response_that_arrives_byte_by_byte_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "TIMEOUT", 1.0)
    with ThreadPoolExecutor(1) as pool, dripping(b"HTTP/1.1 200 O", forever=True) as url:
        answer = pool.submit(sent, url)
        assert isinstance(answer.exception(timeout=30), TimeoutError)


def test_a_name_server_that_does_not_respond_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(targets, "DNS_TIMEOUT", 0.2)

    def wait(*_: object, **__: object) -> list[object]:
        answered.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", wait)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(targets.target_of, "https://slow.example.com/", allow_private=True)
        assert isinstance(answer.exception(timeout=30), TimeoutError)
    answered.set()


@pytest.mark.parametrize(
    ("response", "status"),
    [
        (b"HTTP/1.1 204 No Content\r\n", 204),
        (b"HTTP/1.0 500\n", 500),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\n", 202),
    ],
)
def test_the_status_line_is_enough(response: bytes, status: int) -> None:
    with dripping(response, forever=False) as url:
        assert sent(url) == status


def test_a_response_that_is_not_http_is_not_repeated_in_the_error() -> None:
    first = b"SSH-2.0" + b"\0" * 10_000
    with dripping(first, forever=False) as url, pytest.raises(HTTPException) as failed:
        sent(url)
    assert str(failed.value) == "not an HTTP response"


@pytest.mark.django_db(transaction=True)
def test_silent_receivers_hold_up_no_task(project: Project) -> None:
    with ThreadPoolExecutor(1) as pool, dripping(b"", forever=False) as silent, receiver() as good:
        for url, count in ((silent, 10), (good.url, 1)):
            hook = Webhook.objects.create(project=project, url=url, secret="s", events=["test"])
            for _ in range(count):
                delivery = WebhookDelivery.objects.create(webhook=hook, event="test", body=b"{}")
                pool.submit(deliver, delivery).result(timeout=5)
        eventually(lambda: good.heard)
        eventually(lambda: WebhookDelivery.objects.filter(state="sent").count() == 1)
        assert WebhookDelivery.objects.filter(state="pending", attempts=0).count() == 6  # for the next sweep


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_many_deliveries_to_a_silent_receiver_do_not_delay_those_of_others(
    project: Project, other_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(current_app.conf, "task_always_eager", True)
    with dripping(b"", forever=False) as silent, receiver() as good:
        for owner, url, count in ((project, silent, 250), (other_project, good.url, 1)):
            hook = Webhook.objects.create(project=owner, url=url, secret="s", events=["test"])
            WebhookDelivery.objects.bulk_create(
                WebhookDelivery(webhook=hook, event="test", body=b"{}") for _ in range(count)
            )
        # One attempt has failed, so it is pending for a shorter time than the others.
        retried = WebhookDelivery.objects.filter(webhook=hook)
        retried.update(attempts=1, lease_until=timezone.now() - timedelta(seconds=1))
        deliveries_sweep()
        eventually(lambda: retried.get().state == "sent")


def deliver(delivery: WebhookDelivery) -> None:
    try:
        tasks.webhook_deliver(str(delivery.pk))
    finally:
        connection.close()
