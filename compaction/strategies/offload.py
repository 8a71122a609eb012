"""Offload: shorten very large content in the tail, which no other step may change, and leave a handle.

Runs only if the head and the tail alone leave no room, because the most recently requested content matters
most. An output becomes a descriptor, and giant arguments of an answered call are replaced by their sizes. A
long text of a user or the model keeps its beginning and end; the latest user request is not shortened. Starts
with giants, then continues with the next largest until the prompt fits. Results that the model has not read
yet are spared, unless they are giants or do not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from compaction.context import Context, Output
from compaction.edits import Edit
from compaction.messages import Role, Text, ToolCall
from compaction.strategies.base import FULL, StepResult, Strategy
from compaction.view import VERBATIM, Entry, View

NAME = "offload"

#: Smaller outputs are not worth retrieving separately. They are shortened only if the prompt then fits,
#: because later steps would remove them.
_MIN_TOKENS = 200

#: Descriptors of even smaller outputs hardly save anything.
_LEAST_TOKENS = 80

#: A part of the tail: its position and index, and how and why it would be shortened.
_Candidate = tuple[int, int, Callable[[str], str], str]


def run(view: View, context: Context) -> StepResult:
    evictable = (entry for entry in context.middle(view) if not entry.is_generated)
    fixed = view.tokens - sum(entry.message.tokens for entry in evictable)
    if fixed <= context.ceiling:
        return StepResult(view=view)
    giant, unread = _giant_tokens(context), _unread(view, context)
    edits: list[Edit] = []
    for edit in _largest_first(view, context):
        if edit.position in unread and edit.tokens_before < giant:
            continue
        if fixed <= (context.goal if edit.tokens_before >= giant else context.ceiling):
            break
        edits.append(edit)
        fixed -= edit.tokens_before - edit.tokens_after
    if fixed > context.ceiling:
        edits = [edit for edit in edits if edit.tokens_before >= _MIN_TOKENS]
    edits.sort(key=lambda edit: (edit.position, edit.part or 0))
    return StepResult.of(view, edits)


def _unread(view: View, context: Context) -> frozenset[int]:
    """Return the positions of the newest results, which the model has not read yet.

    Returns none if they do not fit even without the older messages, which a later step drops.
    """
    start = len(view.entries)
    while start and not _is_of_model(view.entries[start - 1]):
        start -= 1
    response = start  # several messages in some dialects; they stay with their results
    while response and _is_of_model(view.entries[response - 1]):
        response -= 1
    dropped = (
        entry.message.tokens
        for entry in view.entries[:response]
        if entry.first > context.head_last and entry.first not in context.protected and not entry.is_generated
    )
    if view.tokens - sum(dropped) > context.ceiling:
        return frozenset()
    return frozenset(entry.first for entry in view.entries[start:])


def _is_of_model(entry: Entry) -> bool:
    return entry.message.role is Role.ASSISTANT


def _largest_first(view: View, context: Context) -> Iterator[Edit]:
    """Yield the edits that would shorten contents of the tail."""
    found = [*_outputs(view, context), *_giants(view, context)]
    found.sort(key=lambda each: -context.size(each[0], each[1]))
    for position, part, shorten, reason in found:
        if context.size(position, part) < _LEAST_TOKENS:
            return
        edit = context.replace(NAME, position, part, shorten, reason=reason)
        if edit:
            yield edit


def _outputs(view: View, context: Context) -> Iterator[_Candidate]:
    for output in context.outputs(view):
        if _in_tail(output.position, context) and not output.rule.exempt:
            reason = "large output in the tail that leaves no room"
            yield output.position, output.part, partial(_described, output, context), reason


def _described(output: Output, context: Context, handle: str) -> str:
    """Return the descriptor of an output. A failure remains verbatim, unless it is a giant."""
    text = context.describe(output, handle)
    if output.is_error and context.counter.count(text) >= _giant_tokens(context):
        return context.clip(text, handle, cap=context.settings.clip_tokens)
    return text


def _giants(view: View, context: Context) -> Iterator[_Candidate]:
    """Yield the texts and the client's calls that are giants."""
    giant = _giant_tokens(context)
    for entry in view.entries:
        if entry.rule != VERBATIM or not _in_tail(entry.first, context) or entry.message.tokens < giant:
            continue
        for part, value in enumerate(entry.message.parts):
            if not isinstance(value, Text | ToolCall) or context.size(entry.first, part) < giant:
                continue
            if isinstance(value, Text):
                clip = partial(context.clip, value.text, cap=context.settings.clip_tokens)
                yield entry.first, part, clip, "long text in the tail that leaves no room"
            elif not (value.server or value.fixed):
                shorten = partial(context.shorten, value, size=context.size(entry.first, part))
                yield entry.first, part, shorten, "long arguments of a call in the tail that leave no room"


def _giant_tokens(context: Context) -> float:
    return context.budget_tokens * context.settings.offload_share


def _in_tail(position: int, context: Context) -> bool:
    return position >= context.tail_first and position not in context.fixed


STRATEGY = Strategy(
    name=NAME,
    meaning="Very large content in the newest messages, shortened, with a handle that restores it.",
    description="If head and tail alone leave no room, replaces outputs in the tail with descriptors, and "
    "shortens giant texts and arguments of calls, largest first. Never the latest user request, and results "
    "that the model has not read yet only if they are giants or do not fit.",
    run=run,
    presets=FULL | {"masking"},
)
