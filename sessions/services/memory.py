"""Writes of working memory: every change is a revision, and of two writers at once one wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from compaction.memory import ASKED_TOKENS, MAX_TOKENS, WorkingMemory
from sessions import bodies
from sessions.counter import counter
from sessions.models import AgentSession, MemoryRevision
from sessions.redaction import redact, redaction_key
from sessions.selectors.memory import memory_latest, memory_value

#: So many of the largest fields are named where a memory is too large.
_NAMED = 3


class StaleMemory(Exception):
    """Another writer came first. `current` is the number of the revision that holds now."""

    def __init__(self, current: int) -> None:
        super().__init__(f"the memory is at revision {current}")
        self.current = current


class MemoryTooLarge(ValueError):
    """The memory would pass its limit. `field` is the largest one."""

    def __init__(self, tokens: int, memory: WorkingMemory) -> None:
        super().__init__(
            f"the memory would take {tokens:,} tokens; at most {MAX_TOKENS:,} are stored and "
            f"{ASKED_TOKENS:,} asked for. The largest fields: {_named(memory)}"
        )
        self.field = largest_fields(memory)[0][0]


@transaction.atomic
def memory_patch(
    *,
    session: AgentSession,
    changes: Mapping[str, Any],
    author: str,
    reason: str = "",
    expected: int | None = None,
) -> MemoryRevision | None:
    """The revision that holds after `changes` (a merge patch); None: the memory was empty and stays so.

    A patch that changes nothing makes no revision. Secrets are taken out. `expected` is the number of the
    revision that the writer has read. Raises `StaleMemory`, `MemoryTooLarge`, `WorkingMemoryError`.
    """
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    latest = memory_latest(session_id=locked.pk)
    current = latest.number if latest is not None else 0
    if expected is not None and expected != current:
        raise StaleMemory(current)
    key = redaction_key(locked.project_id)
    old = memory_value(latest)
    new = old.patched(redact(dict(changes), key=key)[0])
    if new == old:
        return latest
    return MemoryRevision.objects.create(
        session=locked,
        number=current + 1,
        turn_index=max(locked.turn_count - 1, 0),
        author=author,
        reason=redact(reason, key=key)[0],
        body=bodies.pack(bodies.json_bytes(new.to_json())),
        tokens=_tokens(new),
    )


def memory_warning(memory: WorkingMemory, tokens: int) -> str | None:
    """What to tell the writer of a memory that is stored, but larger than it should be."""
    if tokens <= ASKED_TOKENS:
        return None
    return (
        f"the memory takes {tokens:,} tokens; {ASKED_TOKENS:,} are asked for. "
        f"The largest fields: {_named(memory)}"
    )


def largest_fields(memory: WorkingMemory) -> Sequence[tuple[str, int]]:
    """The fields with their tokens, largest first."""
    sizes = {
        name: counter().count(value if isinstance(value, str) else "\n".join(value))
        for name, value in memory.to_json().items()
    }
    return sorted(sizes.items(), key=lambda item: -item[1])[:_NAMED]


def _named(memory: WorkingMemory) -> str:
    return ", ".join(f"{name} ({tokens:,})" for name, tokens in largest_fields(memory))


def _tokens(memory: WorkingMemory) -> int:
    tokens = counter().count(memory.render())
    if tokens > MAX_TOKENS:
        raise MemoryTooLarge(tokens, memory)
    return tokens
