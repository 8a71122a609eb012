"""Change the title, tags and notes of a session, and star it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from types import MappingProxyType

from django.db import transaction

from accounts.actors import SYSTEM, Actor
from compaction.messages import Message, Role, Text
from importers.values import is_request, request_of, title_of
from redaction import Redaction, redact
from sessions.models import AgentSession, Star
from sessions.selectors.redaction import redaction_of
from sessions.selectors.transcripts.rows import messages_load
from sessions.services.sessions.audit import session_audit
from sessions.store.flags import MessageFlag

#: Characters of the notes on a session.
MAX_NOTES = 10_000
#: Number of first messages among which the request for the title is searched.
_OPENING = 20


class LabelsChanged(Exception):
    """Another writer has changed the fields `names` after they were read."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


@transaction.atomic
def session_label(
    *,
    session: AgentSession,
    title: str | None = None,
    tags: Sequence[str] | None = None,
    notes: str | None = None,
    replaces: Mapping[str, str] = MappingProxyType({}),
    actor: Actor = SYSTEM,
) -> AgentSession:
    """Replace the title, tags or notes, without secrets, and record an audit event.

    Importing the session's log again keeps them. `replaces` are the values that the caller has read, as
    `label_text`. Raises `LabelsChanged` if another writer has changed them since.
    """
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    new = _clean(title, tags, notes, redaction_of(locked.project))
    changed = [
        name
        for name, value in new.items()
        if name in replaces and label_text(getattr(locked, name)) not in {replaces[name], label_text(value)}
    ]
    if changed:
        raise LabelsChanged(changed)
    for name, value in new.items():
        setattr(locked, name, value)
    locked.keeps_labels = True
    locked.save(update_fields=["title", "tags", "notes", "keeps_labels"])
    # Omit the new values: they are deleted with the session, but the audit log is not.
    session_audit(locked, "session.labeled", actor, changed=list(new))
    return locked


def label_text(value: str | Sequence[str]) -> str:
    """Return a title, tags or notes as a form shows them."""
    return value if isinstance(value, str) else ", ".join(value)


def _clean(
    title: str | None, tags: Sequence[str] | None, notes: str | None, redaction: Redaction
) -> dict[str, str | Sequence[str]]:
    """Return the given values without secrets, at most as long as the columns."""
    clean: dict[str, str | Sequence[str]] = {}
    if title is not None:
        clean["title"] = redact(" ".join(title.split()), redaction=redaction)[0][:300]
    if tags is not None:
        found = (redact(tag.strip(), redaction=redaction)[0][:100] for tag in tags)
        clean["tags"] = list(dict.fromkeys(filter(None, found)))
    if notes is not None:
        clean["notes"] = redact(notes.strip(), redaction=redaction)[0][:MAX_NOTES]
    return clean


def session_star(*, session: AgentSession, user_id: int, starred: bool) -> None:
    """Star a session for a user, or remove the star. Others do not see it."""
    if starred:
        Star.objects.get_or_create(session=session, user_id=user_id)
    else:
        Star.objects.filter(session=session, user_id=user_id).delete()


def title_set(*, session: AgentSession) -> None:
    """Name a session without a title after its first request, as imports do.

    If its first messages contain none, it is named after the first of the user, such as a greeting.
    """
    rows = messages_load(session.pk, [(0, _OPENING)])
    messages = (row.value(session.format) for row in rows if not row.flags & MessageFlag.META)
    text = reduce(request_of, (_text_of(message) for message in messages if message.role is Role.USER), "")
    if is_request(text) or len(rows) == _OPENING:
        unnamed = AgentSession.objects.filter(pk=session.pk, title="", keeps_labels=False)
        unnamed.update(title=title_of(text))


def _text_of(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))
