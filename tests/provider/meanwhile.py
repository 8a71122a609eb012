"""What happens while a model answers."""

from __future__ import annotations

from collections.abc import Callable

from django.db import DEFAULT_DB_ALIAS, connections

from tests.provider.behaviours import JSON, Answer, Behaviour


def meanwhile(action: Callable[[], object], behaviour: Behaviour) -> Behaviour:
    """Run `action` before the answer, in the transaction of the test, which only waits for the answer."""
    shared = connections[DEFAULT_DB_ALIAS]

    def answer(request: JSON) -> Answer:
        shared.inc_thread_sharing()
        connections[DEFAULT_DB_ALIAS] = shared
        try:
            action()
        finally:
            del connections[DEFAULT_DB_ALIAS]
            shared.dec_thread_sharing()
        return behaviour(request)

    return answer
