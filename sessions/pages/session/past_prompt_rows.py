"""Rows of the prompt view: one for each message or replacement in a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from compaction.messages import Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from compaction.view import VERBATIM, Entry
from sessions.models import AgentSession
from sessions.pages.blocks import calls_of, voice_of
from sessions.pages.text import visible
from sessions.selectors.compactions.message_changes import MessageChange, message_changes
from sessions.selectors.past_prompts.contents import EntryContent, entry_contents
from sessions.selectors.past_prompts.outline import Outline
from sessions.selectors.past_prompts.runs import run_of

#: Rows at the start and end of the initial page; rows between them are loaded on request.
HEAD_ROWS, TAIL_ROWS = 20, 50
#: Rows per request.
PAGE_ROWS = 200
#: Length of a row's preview, in characters.
PREVIEW = 180


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRow:
    """A row of the prompt. It represents the messages `first` to `last` of the transcript.

    `tokens_raw` is their original size, or None if they were evicted. `is_new` marks messages that the
    previous call did not include. `changes` are what the edits did, and `since` is the compaction that first
    removed messages of the row if a later one replaced its edit.
    """

    first: int
    last: int
    turn: int | None
    voice: str
    tool: str
    rule: str
    tokens_raw: int | None
    tokens: int
    preview: str
    is_error: bool
    is_new: bool
    is_pinned: bool
    changes: Sequence[MessageChange]
    since: int | None = None

    @property
    def messages(self) -> int:
        return self.last - self.first + 1

    @property
    def is_changed(self) -> bool:
        return self.rule != VERBATIM

    @property
    def why(self) -> str:
        """All changes, one per line."""
        return "\n".join(
            f"{_author(change)}, after turn {change.turn}: {change.reason}" for change in self.changes
        )

    @property
    def is_evicted(self) -> bool:
        return self.tokens_raw is None


def _author(change: MessageChange) -> str:
    return "Client" if change.compaction is None else f"Compaction {change.compaction}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Rows that are not loaded yet: their number, tokens, and the position after which they start."""

    after: int
    rows: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The loaded rows: `head`, an optional gap, and `tail`."""

    head: Sequence[PromptRow]
    gap: Gap | None = None
    tail: Sequence[PromptRow] = ()


def opening_window(
    session: AgentSession, outline: Outline, *, new_from: int, changed: bool = False
) -> Window:
    """Return the initial rows: all, or the start and end. `changed` selects edited messages only."""
    shown = [entry for entry in outline.rows if entry.rule != VERBATIM or not changed]
    run: Sequence[Entry] = outline.run or () if not changed else ()
    count = len(shown) + len(run)
    if count <= HEAD_ROWS + TAIL_ROWS + 20:
        return Window(head=prompt_rows(session, outline, [*shown, *run], new_from=new_from))
    head, tail = [*shown, *run[:HEAD_ROWS]][:HEAD_ROWS], [*shown, *run[-TAIL_ROWS:]][-TAIL_ROWS:]
    tokens = sum(entry.message.tokens for entry in shown) + (outline.run.tokens if outline.run and run else 0)
    rows = prompt_rows(session, outline, [*head, *tail], new_from=new_from)
    return Window(
        head=rows[:HEAD_ROWS],
        gap=Gap(
            after=head[-1].last,
            rows=count - len(head) - len(tail),
            tokens=tokens - sum(entry.message.tokens for entry in [*head, *tail]),
        ),
        tail=rows[HEAD_ROWS:],
    )


def gap_window(
    session: AgentSession, outline: Outline, *, after: int, until: int, new_from: int, changed: bool
) -> Window:
    """Return the next rows of a gap, after position `after` and before `until`."""
    end, unseen = until, None
    if outline.run is not None:
        end = min(until, max(outline.run.first, after + 1) + PAGE_ROWS)
        unseen = run_of(session, first=end, end=until) if not changed else None
    entries = [entry for entry in outline.between(after + 1, end) if entry.rule != VERBATIM or not changed]
    page, rest = entries[:PAGE_ROWS], entries[PAGE_ROWS:]
    left = len(rest) + (len(unseen) if unseen is not None else 0)
    tokens = sum(entry.message.tokens for entry in rest) + (unseen.tokens if unseen is not None else 0)
    gap = Gap(after=page[-1].last, rows=left, tokens=tokens) if left else None
    return Window(head=prompt_rows(session, outline, page, new_from=new_from), gap=gap)


def prompt_rows(
    session: AgentSession, outline: Outline, entries: Sequence[Entry], *, new_from: int
) -> list[PromptRow]:
    pieces = entry_contents(session=session, outline=outline, entries=entries)
    tools = _tool_names(pieces)
    since = _since(session, outline, pieces)
    return [_row(outline, piece, tools, new_from, since.get(piece.entry.first)) for piece in pieces]


def _since(session: AgentSession, outline: Outline, pieces: Iterable[EntryContent]) -> Mapping[int, int]:
    """Return the compaction that removed the first message of each removed row. One query."""
    places = [(session.pk, piece.entry.first) for piece in pieces if piece.original is None]
    changes = message_changes(places, turn=outline.after)
    return {
        position: change.compaction
        for (_, position), found in changes.items()
        for change in found
        if change.is_removal and change.compaction is not None
    }


def _tool_names(pieces: Iterable[EntryContent]) -> dict[str, str]:
    names: dict[str, str] = {}
    for piece in pieces:
        if piece.original is not None:
            names |= {id: call.name for id, call in calls_of(piece.original).items()}
    return names


def _row(
    outline: Outline, piece: EntryContent, tools: dict[str, str], new_from: int, since: int | None
) -> PromptRow:
    entry, original = piece.entry, piece.original
    changes = outline.changes_of(entry)
    text = entry.message.text if original is None else _beginning(original)
    return PromptRow(
        first=entry.first,
        last=entry.last,
        turn=original.turn if original is not None else None,
        voice="evicted" if original is None else voice_of(original),
        tool=_tool(original, tools) if original is not None else "",
        rule=entry.rule,
        tokens_raw=original.tokens if original is not None else None,
        tokens=entry.message.tokens,
        preview=visible(" ".join(text[: 2 * PREVIEW].split()))[:PREVIEW],
        is_error=original is not None and any(result.is_error for result in original.tool_results),
        is_new=entry.first >= new_from and original is not None,
        is_pinned=original is not None and original.pinned,
        changes=changes,
        since=since if all(change.compaction not in (None, since) for change in changes) else None,
    )


def _tool(message: Message, tools: dict[str, str]) -> str:
    names = [tools.get(result.call_id, "") for result in message.tool_results]
    return visible(", ".join(dict.fromkeys(filter(None, names))))


def _beginning(message: Message) -> str:
    return " ".join(filter(None, map(_part_text, message.parts)))


def _part_text(part: Part) -> str:
    match part:
        case Text(text=text) | ToolResult(text=text):
            return text[: 2 * PREVIEW]
        case Thinking():
            return "(thinking)"
        case ToolCall(name=name, arguments=arguments):
            return f"{name} {arguments[:PREVIEW]}"
        case Opaque(kind=kind):
            return f"[{kind}]"
