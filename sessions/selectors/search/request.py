"""Search requests: the words, the conditions and the scope."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from uuid import UUID

from search.query import MOST_GROUPS, Query, QueryTerm, query_parse
from search.terms import fold, identifiers, words
from sessions.selectors.lists.filter_expression import (
    KEY,
    MESSAGE_KEYS,
    InvalidTerm,
    flag_read,
    term_read,
    value_missing,
)
from sessions.selectors.lists.filters import SessionFilter

# Only at the end, a key without a value is a condition. Elsewhere, it is a word, as in "Error: not found".
_TERM = re.compile(rf'-?"[^"]*"?|({KEY}):(?:"([^"]*)"?|(\S+)|\s*$)|\S+')
ROLES = ("user", "assistant", "tool", "system")


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """Conditions that messages must all meet. `tool` is a name in any letter case; `files` are mentioned."""

    role: str = ""
    tool: str = ""
    error: bool | None = None
    files: tuple[str, ...] = ()

    @property
    def is_set(self) -> bool:
        return self != MessageFilter()

    @property
    def file_terms(self) -> Sequence[QueryTerm]:
        """The terms that a message must have: the names of the files without their folders."""
        names = (file.rstrip("/").rpartition("/")[2] for file in self.files)
        return tuple(
            QueryTerm(term=term) for name in names for term in ([name] if identifiers(name) else words(name))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A search in a project or, with `session_id`, in one session before the position `before`."""

    project_id: UUID
    query: Query
    messages: MessageFilter = field(default_factory=MessageFilter)
    sessions: SessionFilter = field(default_factory=SessionFilter)
    session_id: UUID | None = None
    before: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the request has neither a word to find nor a condition."""
        return self.query.is_blank and not self.messages.is_set and not self.sessions.is_set


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchExpression:
    """A parsed expression: the query, the conditions, and the problems of invalid terms."""

    query: Query
    messages: MessageFilter
    sessions: SessionFilter
    problems: Sequence[str] = ()

    def request(
        self, project_id: UUID, *, session_id: UUID | None = None, before: int | None = None
    ) -> SearchRequest:
        return SearchRequest(
            project_id=project_id,
            query=self.query,
            messages=self.messages,
            sessions=self.sessions,
            session_id=session_id,
            before=before,
        )


def search_expression(text: str, *, is_typing: bool = False, zone: tzinfo = UTC) -> SearchExpression:
    """Parse words and conditions, such as `pool tool:Bash error:yes agent:reader`.

    Keys of messages are `role`, `tool`, `file` and `error`; those of sessions are the list's
    (`lists/filter_expression.py`), whose days are those of the time zone. Other words with a colon are words.
    """
    messages, sessions = MessageFilter(), SessionFilter()
    words, problems = [], []
    for match in _TERM.finditer(text.replace("\0", " ")):
        key, value = match[1], match[2] or match[3] or ""
        try:
            if key and (changed := _message_term(key.lower(), value, messages)) is not None:
                messages = changed
            elif key and (narrowed := term_read(key, value, sessions, zone)) is not None:
                sessions = narrowed
            else:
                words.append(match[0])
        except InvalidTerm as error:
            problems.append(str(error))
    plain = " ".join(words)
    typed = plain + (" " if text.endswith(" ") else "")
    return SearchExpression(
        query=query_parse(typed, is_typing=is_typing),
        messages=messages,
        sessions=sessions,
        problems=problems,
    )


def _message_term(key: str, value: str, messages: MessageFilter) -> MessageFilter | None:
    if key in MESSAGE_KEYS and not value:
        raise value_missing(key, MESSAGE_KEYS[key])
    match key:
        case "role":
            if value.lower() not in ROLES:
                raise InvalidTerm(f"Invalid role. Roles are {', '.join(ROLES)}. Example: role:user")
            return replace(messages, role=value.lower())
        case "tool":
            return replace(messages, tool=value)
        case "file":
            return replace(messages, files=(*messages.files, fold(value))[:MOST_GROUPS])
        case "error":
            return replace(messages, error=flag_read(value, "error"))
    return None
