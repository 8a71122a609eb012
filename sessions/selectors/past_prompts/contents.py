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
    edits = {id(entry): outline.edits_of(entry) for entry in entries}
    changed = [edit.id for entry in entries if not entry.is_generated for edit in edits[id(entry)]]
    texts = edit_texts(changed)
    positions = [entry.first for entry in entries if not entry.is_generated]
    rows = {row.position: row for row in _rows(session, positions)}
    return [_content(session, entry, rows.get(entry.first), edits[id(entry)], texts) for entry in entries]


def originals(*, session: AgentSession, first: int, last: int, limit: int) -> list[Message]:
    """Return the first `limit` messages from position `first` to `last`, as pushed."""
    rows = session.messages.filter(position__gte=first, position__lte=last).select_related("blob")
    return list(rows.order_by("position")[:limit])


def _rows(session: AgentSession, positions: Sequence[int]) -> Sequence[Message]:
    if not positions:
        return ()
    return list(session.messages.filter(position__in=positions).select_related("blob"))


def _content(
    session: AgentSession,
    entry: Entry,
    row: Message | None,
    edits: Sequence[RecordedEdit],
    texts: Mapping[int, str],
) -> EntryContent:
    made = entry.is_generated or row is None
    return EntryContent(
        entry=entry,
        row=None if made else row,
        original=None if made or row is None else message_value(row, session.format),
        edits=edits,
        texts={edit.id: texts.get(edit.id, edit.value.text) for edit in edits},
    )
