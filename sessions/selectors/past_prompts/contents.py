"""The contents of outline entries: the pushed messages and their replacements in the prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.messages import Message as MessageValue
from compaction.view import Entry
from sessions.models import AgentSession, Message
from sessions.selectors.convert import message_value
from sessions.selectors.past_prompts.outline import Outline, RecordedEdit
from sessions.store.edit_texts import edit_texts


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryContent:
    """An entry with its contents.

    `row` and `original` are None if the entry replaces evicted messages. `texts` maps edit ids to the text
    that each edit shows.
    """

    entry: Entry
    row: Message | None
    original: MessageValue | None
    edits: Sequence[RecordedEdit]
    texts: Mapping[int, str]


def entry_contents(
    *, session: AgentSession, outline: Outline, entries: Sequence[Entry]
) -> list[EntryContent]:
    """Return the contents of entries. Two queries."""
    pushed = [entry for entry in entries if not entry.is_generated]
    texts = edit_texts([edit.id for entry in pushed for edit in outline.edits_of(entry)])
    messages = session.messages.filter(position__in=[entry.first for entry in pushed])
    rows = {row.position: row for row in messages.select_related("blob")}
    return [_content(session, outline, entry, rows, texts) for entry in entries]


def originals(*, session: AgentSession, first: int, last: int, limit: int) -> list[Message]:
    """Return the first `limit` messages from position `first` to `last`, as pushed."""
    rows = session.messages.filter(position__gte=first, position__lte=last).select_related("blob")
    return list(rows.order_by("position")[:limit])


def _content(
    session: AgentSession,
    outline: Outline,
    entry: Entry,
    rows: Mapping[int, Message],
    texts: Mapping[int, str],
) -> EntryContent:
    row = rows.get(entry.first) if not entry.is_generated else None
    edits = outline.edits_of(entry)
    return EntryContent(
        entry=entry,
        row=row,
        original=message_value(row, session.format) if row is not None else None,
        edits=edits,
        texts={edit.id: texts.get(edit.id, edit.value.text) for edit in edits},
    )
