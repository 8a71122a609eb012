"""The Pareto front of cost and lost references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar


class Choice(Protocol):
    """A policy and budget with its results."""

    @property
    def cost(self) -> float: ...

    @property
    def lost(self) -> float: ...


C = TypeVar("C", bound=Choice)


def front(choices: Sequence[C]) -> list[C]:
    """Return the choices that no other choice dominates in cost and losses, cheapest first.

    Of two equal choices, the first is kept.
    """
    best: list[C] = []
    for choice in sorted(choices, key=lambda c: (c.cost, c.lost)):
        if not best or choice.lost < best[-1].lost:
            best.append(choice)
    return best
