"""The outline of a past prompt: its messages, with the strategy and the tokens of each.

Loading an outline reads only small columns of the messages in the prompt and no bodies, so its cost depends
on the size of the prompt and not on the length of the history. In long sessions, the unchanged messages at
the end of the prompt are counted, and loaded where they are shown: a client that never compacts has a prompt
of all messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.db.models import Q

from compaction.edits import Edit as EditValue
from compaction.edits import Op
from compaction.messages import Message as MessageValue
from compaction.messages import Role
from compaction.view import Entry, apply, in_force
from compaction.view.components import COMPONENT_OPS, MEMORY, Components, shed, shown_memory, with_memory
from sessions.models import AgentSession, Edit, Message, Preamble, Turn
from sessions.selectors.compactions.client_context import CLIENT, affects, client_start
from sessions.selectors.compactions.edits import edits_in_force_after, edits_not_evicted
from sessions.selectors.compactions.message_changes import REMOVED_BY_CLIENT, MessageChange
from sessions.selectors.compactions.omissions import omissions
from sessions.selectors.past_prompts.runs import Run, messages_without_parts, run_of
from sessions.selectors.prompts.stored import components_of
from sessions.store.edit_texts import edit_texts

#: Number of messages from which a session counts as long.
LONG = 10_000
#: Maximum messages of a prompt that is rendered as JSON.
MOST_IN_JSON = 2_000
#: Number of messages at the start of a prompt that are always loaded, because the working memory may follow
#: one of them.
_HEAD = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEdit:
    """An edit in a prompt, with its primary key and the number of its compaction.

    An omission by the client is an eviction with the key 0 and without a compaction. The prompts after `turn`
    contain the edit. `value.text` is loaded for evictions only. The text of a replaced part is loaded when it
    is shown.
    """

    id: int
    compaction: int | None
    turn: int
    value: EditValue

    @property
    def change(self) -> MessageChange:
        """What the edit did to its messages."""
        return MessageChange(
            is_removal=self.value.op is Op.EVICT,
            compaction=self.compaction,
            turn=self.turn,
            strategy=self.value.strategy,
            reason=self.value.reason,
        )


@dataclass(frozen=True, kw_only=True)
class Outline:
    """The prompt of the call of turn `index`. `turn` is None for the next call.

    `end` is the position after its last message. The recording client no longer sent messages before
    `client_start`. The messages of `entries` have no parts; in long sessions, `run` follows them. `memory` is
    the edit that recorded the working memory, which follows the first `memory_index` entries; None if the
    prompt contains none.
    """

    index: int
    turn: Turn | None
    preamble: Preamble | None
    components: Components
    memory: EditValue | None
    memory_index: int
    entries: Sequence[Entry]
    run: Run | None
    edits: Sequence[RecordedEdit]
    client_start: int
    end: int

    @property
    def after(self) -> int:
        """The turn after which an edit is too late for this prompt.

        A compaction after the last prompt was served is part of the next prompt only.
        """
        return self.index - 1 if self.turn is not None else self.index

    @cached_property
    def rows(self) -> Sequence[Entry]:
        """The entries, and an empty one for each eviction without a replacement, in order."""
        evictions = [edit.value for edit in self.edits if edit.value.op is Op.EVICT and not edit.value.text]
        empty = [
            Entry(
                MessageValue(position=value.position, role=Role.USER, parts=()),
                value.position,
                value.end,
                value.strategy,
            )
            for value in evictions
        ]
        return sorted([*self.entries, *empty], key=lambda entry: entry.first) if empty else self.entries

    @property
    def tokens(self) -> int:
        """The estimated tokens of the whole prompt."""
        rest = self.run.tokens if self.run is not None else 0
        return sum(entry.message.tokens for entry in self.entries) + rest + self.components.total

    @property
    def message_count(self) -> int:
        """The number of messages, including those of the run."""
        return len(self.entries) + (len(self.run) if self.run is not None else 0)

    @property
    def has_json(self) -> bool:
        """Whether the prompt is short enough to render it as JSON, which takes time in proportion."""
        return self.message_count <= MOST_IN_JSON

    def between(self, first: int, end: int) -> list[Entry]:
        """Return the rows that begin from position `first` up to `end`."""
        found = [entry for entry in self.rows if first <= entry.first < end]
        if self.run is not None:
            found += self.run[max(first - self.run.first, 0) : max(end - self.run.first, 0)]
        return found

    def edits_of(self, entry: Entry) -> Sequence[RecordedEdit]:
        """Return the edits that produced an entry."""
        return self._by_span.get((entry.first, entry.last, entry.is_generated), ())

    def changes_of(self, entry: Entry) -> Sequence[MessageChange]:
        """Return what the edits of an entry did, each once: several parts may be shortened for one reason."""
        return list(dict.fromkeys(edit.change for edit in self.edits_of(entry)))

    @cached_property
    def _by_span(self) -> Mapping[tuple[int, int, bool], Sequence[RecordedEdit]]:
        found: dict[tuple[int, int, bool], list[RecordedEdit]] = {}
        for edit in self.edits:
            if edit.value.op not in COMPONENT_OPS:
                key = (edit.value.position, edit.value.end, edit.value.op is Op.EVICT)
                found.setdefault(key, []).append(edit)
        return found

    def entry_at(self, position: int) -> Entry | None:
        """Return the row that shows, replaces or omits the message at a position, or None."""
        if self.run is not None and self.run.first <= position < self.run.end:
            return self.run[position - self.run.first]
        return next((entry for entry in self.rows if entry.first <= position <= entry.last), None)


def outline_at(*, session: AgentSession, index: int, applied: Q | None = None) -> Outline | None:
    """Return the outline for turn `index`, or for the call after the last turn. None if out of range.

    `applied` selects the edits to apply instead of those that were in force.
    """
    if not 0 <= index <= session.turn_count:
        return None
    turn = session.turns.filter(index=index).first()
    end = prompt_end(turn) if turn is not None else session.message_count
    start = client_start(session_id=session.pk, context_start=session.context_start, turn=index)
    # A compaction after the last prompt was served is part of the next prompt only.
    in_force_after = index - 1 if turn is not None else index
    selected = edits_in_force_after(in_force_after) if applied is None else applied
    omitted = _omitted(session, end=end if turn is not None else end + 1)  # the next call adds messages
    edits = [edit for edit in [*_edits(session, selected), *omitted] if affects(edit.value, start)]
    version = turn.preamble_version if turn is not None else session.preamble_version
    preamble = session.preambles.filter(version=version).first()
    values = [edit.value for edit in edits]
    run = _run(session, values, start, end)
    messages = _shown_messages(session, values, start, run.first if run is not None else end)
    prompt = apply(values, messages).prompt_entries
    shown = [entry for entry in prompt if start <= entry.last < end or entry.is_generated]
    rules = [entry.rule for entry in shown]
    system = sum(message.tokens for message in messages if message.role is Role.SYSTEM)
    system += run.system_tokens if run is not None else 0
    return Outline(
        index=index,
        turn=turn,
        preamble=preamble,
        components=shed(with_memory(_components(turn, session, preamble, system), values), values),
        memory=shown_memory(values),
        memory_index=rules.index(MEMORY) if MEMORY in rules else len(rules),
        entries=[entry for entry in shown if entry.rule != MEMORY],
        run=run,
        edits=edits,
        client_start=start,
        end=end,
    )


def prompt_end(turn: Turn) -> int:
    """Return the end of the prompt of a turn's call: the position of the response, or the turn's end."""
    end = turn.first_position + turn.message_count
    answers = Message.objects.filter(
        session_id=turn.session_id, position__gte=turn.first_position, position__lt=end, role=Role.ASSISTANT
    )
    first = answers.order_by("position").values_list("position", flat=True).first()
    return end if first is None else first


def _components(
    turn: Turn | None, session: AgentSession, preamble: Preamble | None, system_tokens: int
) -> Components:
    """Return the tokens of the system prompt and the tools.

    For imported logs, only their sizes are known, which include the `system_tokens` of messages.
    """
    if preamble is not None:
        return components_of(preamble)
    known = turn.components if turn is not None else session.context_components
    return Components(system=max(known.get("system", 0) - system_tokens, 0), tools=known.get("tools", 0))


def _edits(session: AgentSession, selected: Q) -> list[RecordedEdit]:
    """Return the selected edits that are in force. Determines them before loading any text."""
    if not session.compaction_count:
        return []
    rows = edits_not_evicted(Edit.objects.filter(selected, session=session))
    light = [
        RecordedEdit(id=id, compaction=number, turn=turn, value=_edit(op, values))
        for id, number, turn, op, *values in rows.order_by("compaction__number", "ordinal").values_list(
            "pk", "compaction__number", "compaction__first_turn", "op", *_FIELDS
        )
    ]
    named = _with_texts(light, Op.SHED, Op.RESTORE)  # their text names the component
    kept = {id(value) for value in in_force([edit.value for edit in named])}
    return _with_texts([edit for edit in named if id(edit.value) in kept], Op.EVICT, Op.MEMORY)


def _omitted(session: AgentSession, *, end: int) -> list[RecordedEdit]:
    """Return the omissions of messages by the client that the prompt reflects, as edits."""
    return [
        RecordedEdit(
            id=0,
            compaction=None,
            turn=each.turn,
            value=EditValue(
                strategy=CLIENT,
                op=Op.EVICT,
                position=each.position,
                end=each.position,
                reason=REMOVED_BY_CLIENT,
                tokens_before=each.tokens,
            ),
        )
        for each in omissions(session.pk, end=end)
    ]


def _edit(op: str, values: Sequence[Any]) -> EditValue:
    return EditValue(op=Op(op), **dict(zip(_FIELDS, values, strict=True)))


#: The small columns of an edit.
_FIELDS = (
    "strategy", "position", "end", "part", "handle", "reason", "tokens_before", "tokens_after",
)  # fmt: skip


def _with_texts(edits: Sequence[RecordedEdit], *ops: Op) -> list[RecordedEdit]:
    ids = [edit.id for edit in edits if edit.value.op in ops]
    texts = edit_texts(ids)
    return [
        replace(edit, value=replace(edit.value, text=texts[edit.id])) if edit.id in texts else edit
        for edit in edits
    ]


def _shown_messages(
    session: AgentSession, edits: Sequence[EditValue], start: int, end: int
) -> list[MessageValue]:
    """Return the messages that no eviction covers, without their parts."""
    shown, at = Q(), start
    for first, last in sorted((e.position, e.end) for e in edits if e.op is Op.EVICT):
        if first > at:
            shown |= Q(position__gte=at, position__lt=first)
        at = max(at, last + 1)
    shown |= Q(position__gte=at)
    return messages_without_parts(session, shown & Q(position__lt=end))


def _run(session: AgentSession, edits: Sequence[EditValue], start: int, end: int) -> Run | None:
    """Return the messages after the last edit if the session is long."""
    if session.message_count <= LONG:
        return None
    changed = max((edit.end + 1 for edit in edits), default=0)
    return run_of(session, first=min(max(changed, start + _HEAD), end), end=end)
