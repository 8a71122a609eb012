"""Store the comments of a log, and keep the pins and comments of turns that an import replaces.

Their messages and turns may move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F

from importers.base import ImportedSession
from sessions.models import AgentSession, Comment, Message, Pin, Turn
from sessions.services.sessions.comments import MAX_COMMENT, MOST_COMMENTS
from sessions.services.sessions.labels import MAX_NOTES
from sessions.store.flags import MessageFlag

#: An id of a turn: that of its request, its response or one of its messages in the log.
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotations:
    """The pins with the ids of their messages in the log, and the ids of each turn with comments."""

    pins: Sequence[tuple[Pin, str | None]]
    comments: Mapping[int, frozenset[_Key]]


def annotations_import(session: AgentSession, facts: ImportedSession) -> None:
    """Store the notes and comments of the log that created the session."""
    if facts.notes:
        session.notes = facts.notes[:MAX_NOTES]
        session.save(update_fields=["notes"])
    Comment.objects.bulk_create(
        Comment(
            session=session,
            turn=comment.turn,
            text=comment.text[:MAX_COMMENT],
            imported_author=" ".join(comment.author.split()),
            created_at=comment.at or session.started_at,
        )
        for comment in facts.comments[:MOST_COMMENTS]
    )


def annotations_of(session: AgentSession, *, first: int) -> Annotations:
    """Return the pins and comments of the turns from index `first` on."""
    messages = session.messages.filter(turn_index__gte=first)
    pins = list(Pin.objects.filter(session=session, position__in=messages.values("position")))
    positions = [pin.position for pin in pins]
    names = dict(messages.filter(position__in=positions).values_list("position", "source_id"))
    turns = set(Comment.objects.filter(session=session, turn__gte=first).values_list("turn", flat=True))
    keys = _turn_keys(session, first) if turns else {}
    return Annotations(
        pins=[(pin, names[pin.position]) for pin in pins],
        comments={turn: frozenset(key for key, at in keys.items() if at == turn) for turn in turns},
    )


def annotations_restore(session: AgentSession, annotations: Annotations, *, first: int) -> None:
    """Move the pins and comments to the new turns. Deletes pins of messages that are not in the log."""
    if annotations.pins:
        _pins_restore(session, annotations.pins)
    if not annotations.comments:
        return
    keys = _turn_keys(session, first)
    found = {
        turn: next((keys[key] for key in old if key in keys), turn)
        for turn, old in annotations.comments.items()
    }
    moved = list(Comment.objects.filter(session=session, turn__in=found))
    for comment in moved:
        comment.turn = found[comment.turn]
    Comment.objects.bulk_update(moved, ["turn"])


def _pins_restore(session: AgentSession, pins: Sequence[tuple[Pin, str | None]]) -> None:
    names = [name for _, name in pins if name is not None]
    rows = Message.objects.filter(session=session, source_id__in=names)
    positions = dict(rows.values_list("source_id", "position"))
    Pin.objects.filter(session=session, position__in=[pin.position for pin, _ in pins]).delete()
    kept = [(pin, positions[name]) for pin, name in pins if name in positions]
    for pin, position in kept:
        pin.position = position
    Pin.objects.bulk_create([pin for pin, _ in kept], ignore_conflicts=True)  # the log may have pins too
    pinned = session.messages.filter(position__in=[position for _, position in kept])
    pinned.update(flags=F("flags").bitor(MessageFlag.PINNED.value))


def _turn_keys(session: AgentSession, first: int) -> dict[_Key, int]:
    """Return the ids of the turns from index `first` on, with the index of each."""
    found: dict[_Key, int] = {}
    turns = Turn.objects.filter(session=session, index__gte=first)
    for index, request, response in turns.values_list("index", "request_id", "response_id"):
        found |= {("request", request or ""): index, ("response", response or ""): index}
    messages = session.messages.filter(turn_index__gte=first).values_list("turn_index", "source_id")
    found |= {("message", name or ""): index for index, name in messages}
    return {key: index for key, index in found.items() if key[1]}
