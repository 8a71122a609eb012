"""Suggest keys and known values for the last term of a filter expression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accounts.models import Project
from sessions.selectors.lists.filter_expression import HINTS, METADATA, METADATA_HINT, term_text
from sessions.selectors.lists.sessions import sessions_facets, sessions_metadata_keys, sessions_tags

#: Maximum number of suggestions.
LIMIT = 16

_FIXED = {
    "health": ("A", "B", "C", "D", "F"),
    "compacted": ("yes", "no"),
    "subagents": ("yes", "no"),
    "active": ("today", "24h", "7d", "30d"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A suggestion. `text` replaces the whole expression; `label` and `hint` are displayed."""

    text: str
    label: str
    hint: str = ""


def suggestions_of(*, project: Project, text: str) -> list[Suggestion]:
    before, last = _split(text)
    key, colon, value = last.partition(":")
    if not colon:
        return [
            Suggestion(text=f"{before}{typed}", label=typed, hint=hint)
            for typed, hint in _keys(project, key.lower())[:LIMIT]
        ]
    known = _known(project, key.lower())
    typed = value.strip('"').casefold()
    found = [name for name in known if typed in name.casefold() and name.casefold() != typed]
    terms = [term_text(key, name) for name in found[:LIMIT]]
    return [Suggestion(text=f"{before}{term} ", label=term) for term in terms]


def _keys(project: Project, start: str) -> list[tuple[str, str]]:
    """Return the keys that begin with `start`, with the text to insert and a hint."""
    found = [(f"{name}:", hint) for name, hint in HINTS.items() if name.startswith(start)]
    if start.startswith(METADATA):
        names = (f"{METADATA}{key}:" for key in sessions_metadata_keys(project=project))
        return [(name, "metadata") for name in names if name.lower().startswith(start)]
    if METADATA.startswith(start):
        found.append((METADATA, METADATA_HINT))
    return found


def _split(text: str) -> tuple[str, str]:
    """Split the expression before its last term, which may be an open quoted string with spaces."""
    at = text.rfind('"') if text.count('"') % 2 else len(text)
    start = text.rfind(" ", 0, at) + 1
    return text[:start], text[start:]


def _known(project: Project, key: str) -> Sequence[str]:
    if key in _FIXED:
        return _FIXED[key]
    if key == "tag":
        return sessions_tags(project=project)
    if key in {"agent", "model"}:
        facets = sessions_facets(project=project)
        return facets.agents if key == "agent" else facets.models
    return ()
