"""The Pareto front of cost and lost references: what no other choice beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar


class Choice(Protocol):
    """A policy and budget with what it came to."""

    @property
    def cost(self) -> float: ...

    @property
    def lost(self) -> float: ...


C = TypeVar("C", bound=Choice)


def front(choices: Sequence[C]) -> list[C]:
    """The choices that no other one beats: none costs as little and loses less, or less and as little.

    Cheapest first. Of two that are equal in both, the first given stays.
    """
    best: list[C] = []
    for choice in sorted(choices, key=lambda c: (c.cost, c.lost)):
        if not best or choice.lost < best[-1].lost:
            best.append(choice)
    return best
