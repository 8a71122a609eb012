"""Cache facts about texts, so that each is computed once per process.

A message appears in several plans before it is evicted, and several steps of each need the same facts about
it. The cache key is the length of the text and its keyed 64-bit hash. Collisions are practically impossible,
so the texts need not be stored.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, TypeVarTuple

Fact = TypeVar("Fact")
Content = TypeVar("Content", str, bytes)
Others = TypeVarTuple("Others")

#: Returned by a lookup of a text that is not cached. An exception would take much longer.
_UNKNOWN: Any = object()

_caches: list[dict[Any, Any]] = []


def once_per_text(
    limit: int,
) -> Callable[[Callable[[Content, *Others], Fact]], Callable[[Content, *Others], Fact]]:
    """Return a decorator that caches up to `limit` results of a function of a text and hashable values."""

    def decorate(find: Callable[[Content, *Others], Fact]) -> Callable[[Content, *Others], Fact]:
        known: dict[Any, Any] = {}
        _caches.append(known)

        @wraps(find)
        def found(text: Content, *others: *Others) -> Fact:
            key = hash(text), len(text), *others
            fact: Fact = known.get(key, _UNKNOWN)
            if fact is _UNKNOWN:
                if len(known) >= limit:
                    known.clear()
                fact = known[key] = find(text, *others)
            return fact

        return found

    return decorate


def forget() -> None:
    """Clear the caches. Used by benchmarks of a session's first plan."""
    for cache in _caches:
        cache.clear()
