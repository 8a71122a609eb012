"""Working memory and shared facts."""

from __future__ import annotations

from typing import Literal, TypedDict

from contextapp_client.types.common import JsonObject


class MemoryFields(TypedDict, total=False):
    """Working memory. `recent_edits` are diffs; `tried` lists failed attempts and why they failed."""

    task: str
    important_files: list[str]
    decisions: list[str]
    open_questions: list[str]
    next: str
    blockers: list[str]
    recent_edits: list[str]
    tried: list[str]


class MemoryItem(TypedDict):
    """An item of working memory with its origin. `stale` is the reason why it is no longer true, or None."""

    field: str
    text: str
    author: str
    via: str
    turn: int
    message: int | None
    stale: str | None


class NewFact(TypedDict):
    """An item of working memory to propose: its field, and its text exactly as in the memory."""

    field: str
    text: str


class Fact(TypedDict):
    """A fact shared between sessions. `seen_in` is the number of sessions whose memory contained it."""

    id: str
    agent: str
    field: str
    text: str
    state: Literal["proposed", "accepted", "rejected"]
    session: str | None
    revision: int | None
    seen_in: int
    seen_at: str
    created_at: str
    confirmed_at: str
    expires_at: str | None
    doubts: list[JsonObject]


class Memory(TypedDict):
    """A revision of working memory. `warning` is set if the memory is too large."""

    revision: int
    memory: MemoryFields
    tokens: int
    turn: int | None
    author: str | None
    reason: str
    at: str | None
    warning: str | None
    items: list[MemoryItem]
