"""The texts of the messages that differ between two prompts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.safestring import SafeString

from compaction.edits import Op
from compaction.jsontext import loads_object
from compaction.messages import Opaque, Part, Text, Thinking, ToolCall, ToolResult
from compaction.view import Entry
from sessions.models import AgentSession
from sessions.pages.access import number_of
from sessions.pages.blocks import voice_of
from sessions.pages.rendering.diffs import diff_html
from sessions.selectors.past_prompts.changes import PromptChange, prompt_changes
from sessions.selectors.past_prompts.contents import EntryContent, entry_contents
from sessions.selectors.past_prompts.outline import Outline

#: Changes per page, evicted messages of one change whose text is displayed, and characters of a text.
_CHANGES, _EVICTED, _TEXT = 25, 30, 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChange:
    """A change for display. `diff` compares the texts.

    `left_out` counts evicted messages without text, `cut` the characters that are not compared.
    """

    change: PromptChange
    voice: str = ""
    diff: SafeString | None = None
    left_out: int = 0
    cut: int = 0


def changes_context(
    request: HttpRequest, session: AgentSession, before: Outline, after: Outline
) -> dict[str, Any]:
    """Return one page of the changes between two prompts. Query parameters: `view` and `from`."""
    changes = prompt_changes(before, after)
    first = number_of(request, "from") or 0
    page = changes.page(first, _CHANGES)
    is_unified = request.GET.get("view") == "unified"
    kept = {name: value for name, value in request.GET.items() if name == "turn"}
    unified = {"view": "unified"} if is_unified else {}
    left = max(len(changes) - first - len(page), 0)
    return {
        "shown_changes": _shown(session, before, after, page, is_unified),
        "memory_diff": _memory(before, after, is_unified) if first == 0 else None,
        "counts": _counts(changes.counts()),
        "view": "unified" if is_unified else "side",
        "changes_left": left,
        "more_query": urlencode(kept | unified | {"from": first + _CHANGES}) if left else "",
        "side_query": urlencode(kept),
        "unified_query": urlencode(kept | {"view": "unified"}),
    }


def _counts(counts: Mapping[str, tuple[int, int, int]]) -> list[tuple[str, int, int, int]]:
    """Return for each kind the number of messages, and their tokens before and after."""
    order = ("kept", "shortened", "replaced", "evicted", "new")
    return [(kind, *counts[kind]) for kind in order if kind in counts]


def _shown(
    session: AgentSession,
    before: Outline,
    after: Outline,
    changes: Sequence[PromptChange],
    is_unified: bool,
) -> list[ShownChange]:
    changed = [change for change in changes if change.kind != "kept"]
    replaced = [change.old_entries(_EVICTED) for change in changes]
    old = _contents(session, before, [entry for entries in replaced for entry in entries])
    new = _contents(session, after, [change.new for change in changed if change.new is not None])
    shown = []
    for change, entries in zip(changes, replaced, strict=True):
        if change.kind == "kept":
            shown.append(ShownChange(change=change))
            continue
        pieces = [old[entry.first, entry.last] for entry in entries]
        piece = new[change.new.first, change.new.last] if change.new is not None else None
        texts = "\n".join(map(_text, pieces)), _text(piece) if piece is not None else ""
        originals = [each.original for each in [*pieces, piece] if each is not None and each.original]
        shown.append(
            ShownChange(
                change=change,
                voice=voice_of(originals[0]) if originals and change.entries <= 1 else "",
                diff=diff_html(*(text[:_TEXT] for text in texts), is_unified=is_unified),
                left_out=change.old_count - len(pieces),
                cut=max(0, *(len(text) - _TEXT for text in texts)),
            )
        )
    return shown


def _contents(
    session: AgentSession, outline: Outline, entries: Sequence[Entry]
) -> dict[tuple[int, int], EntryContent]:
    pieces = entry_contents(session=session, outline=outline, entries=entries)
    return {(piece.entry.first, piece.entry.last): piece for piece in pieces}


def _memory(before: Outline, after: Outline, is_unified: bool) -> SafeString | None:
    old, new = (outline.memory.text if outline.memory else "" for outline in (before, after))
    return diff_html(old, new, is_unified=is_unified) if old != new else None


def _text(piece: EntryContent) -> str:
    """Return the text of a message as the prompt contains it."""
    if piece.original is None:
        return piece.entry.message.text
    by_part = {edit.value.part: edit for edit in piece.edits}
    texts = []
    for index, part in enumerate(piece.original.parts):
        edit = by_part.get(index)
        if edit is None:
            texts.append(_part_text(part))
        elif edit.value.op is not Op.STRIP:
            texts.append(piece.texts[edit.id])
    return "\n".join(texts)


def _part_text(part: Part) -> str:
    match part:
        case Text(text=text) | Thinking(text=text) | ToolResult(text=text):
            return text
        case ToolCall():
            arguments = json.dumps(loads_object(part.arguments), ensure_ascii=False, indent=2)
            return f"{part.name} {arguments}"
        case Opaque():
            return f"({part.kind})"
