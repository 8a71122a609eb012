"""What the page shows of a prompt: a line for each message, whole or what is left of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compaction.messages import Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from compaction.view import VERBATIM, Entry
from sessions.models import AgentSession
from sessions.pages.blocks import calls_of, voice_of
from sessions.pages.text import visible
from sessions.selectors.past_prompts import EntryContent, Outline, RecordedEdit, entry_contents

#: Lines at the beginning and at the end that a page opens with; those between are fetched when asked for.
HEAD_ROWS, TAIL_ROWS = 20, 80
#: Lines that one request fetches.
PAGE_ROWS = 200
#: Characters of a message's beginning that its line shows.
PREVIEW = 180


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRow:
    """One line. `messages` is how many of the transcript it stands for; `tokens_raw` what those took, None
    where it stands for evicted ones. `is_new`: the call before had not read it."""

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
    edits: Sequence[RecordedEdit]

    @property
    def messages(self) -> int:
        return self.last - self.first + 1

    @property
    def is_changed(self) -> bool:
        return self.rule != VERBATIM

    @property
    def is_evicted(self) -> bool:
        return self.tokens_raw is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Lines that are not fetched yet: how many, their tokens, and the position behind which they begin."""

    after: int
    rows: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The lines that are shown: `head`, the gap if any, and `tail`."""

    head: Sequence[SeenRow]
    gap: Gap | None = None
    tail: Sequence[SeenRow] = ()


def opening_window(
    session: AgentSession, outline: Outline, *, new_from: int, changed: bool = False
) -> Window:
    """The lines a page opens with: all, or the beginning and the end. `changed`: of edited messages only."""
    entries = [entry for entry in outline.entries if entry.rule != VERBATIM or not changed]
    if len(entries) <= HEAD_ROWS + TAIL_ROWS + 20:
        return Window(head=seen_rows(session, outline, entries, new_from=new_from))
    head, middle, tail = entries[:HEAD_ROWS], entries[HEAD_ROWS:-TAIL_ROWS], entries[-TAIL_ROWS:]
    rows = seen_rows(session, outline, [*head, *tail], new_from=new_from)
    return Window(
        head=rows[:HEAD_ROWS],
        gap=Gap(after=head[-1].last, rows=len(middle), tokens=sum(e.message.tokens for e in middle)),
        tail=rows[HEAD_ROWS:],
    )


def gap_window(
    session: AgentSession, outline: Outline, *, after: int, until: int, new_from: int, changed: bool = False
) -> Window:
    """The next lines of a gap, behind position `after` and before `until`."""
    entries = [
        entry
        for entry in outline.entries
        if after < entry.first < until and (entry.rule != VERBATIM or not changed)
    ]
    page, rest = entries[:PAGE_ROWS], entries[PAGE_ROWS:]
    gap = (
        Gap(after=page[-1].last, rows=len(rest), tokens=sum(e.message.tokens for e in rest)) if rest else None
    )
    return Window(head=seen_rows(session, outline, page, new_from=new_from), gap=gap)


def seen_rows(
    session: AgentSession, outline: Outline, entries: Sequence[Entry], *, new_from: int
) -> list[SeenRow]:
    pieces = entry_contents(session=session, outline=outline, entries=entries)
    tools = _tool_names(pieces)
    return [_row(piece, tools, new_from) for piece in pieces]


def _tool_names(pieces: Iterable[EntryContent]) -> dict[str, str]:
    names: dict[str, str] = {}
    for piece in pieces:
        if piece.original is not None:
            names |= calls_of(piece.original)
    return names


def _row(piece: EntryContent, tools: dict[str, str], new_from: int) -> SeenRow:
    entry, original = piece.entry, piece.original
    text = entry.message.text if original is None else _beginning(original)
    return SeenRow(
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
        edits=piece.edits,
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
