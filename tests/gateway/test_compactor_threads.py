"""The threads that load edits while the store hangs."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest
from django.db import OperationalError

from accounts.models import ApiKey
from gateway import compact
from gateway.callers import Caller
from gateway.calls import Call, KeyProof
from gateway.compact import Compactor
from sessions.services.reconcile.served import NotServable
from tests import asynchronous

KEY = KeyProof(prefix="p", hash="h")
BODY = b'{"messages": [{"role": "user", "content": "Hi."}]}'


def test_requests_that_are_forwarded_do_not_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    is_released = threading.Event()

    def hang(*_: object) -> None:
        is_released.wait(30)
        raise OperationalError("the connection is closed")

    async def work() -> None:
        compactor = Compactor(patience=0.01)
        for _ in range(30):
            call = Call(
                id="0", at=0, provider="anthropic", endpoint="messages", upstream="https://a", mode="compact",
                key=KEY, headers={}, body=BODY,
            )  # fmt: skip
            with pytest.raises(NotServable, match="timeout"):
                await compactor.serve(call, Caller(key=KEY, row=ApiKey()))
        del call

    monkeypatch.setattr(compact, "caller_id", hang)
    try:
        asynchronous.run(asyncio.wait_for(work(), 20))
        gc.collect()
        # `isinstance` would evaluate lazy objects of other tests.
        kept = [each for each in gc.get_objects() if type(each) is Call and each.body is BODY]
    finally:
        is_released.set()
    assert len(kept) <= 8  # one in each thread
