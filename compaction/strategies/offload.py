"""Offload: shorten very large content in the tail, which no other step may change, and leave a handle.

Runs only if the head and the tail alone leave no room, because the most recently requested content matters
most. An output becomes a descriptor, and giant arguments of an answered call are replaced by their sizes. A
long text of a user or the model keeps its beginning and end; the latest user request is not shortened. Starts
with giants, then continues with the next largest until the prompt fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from compaction.context import Context, Output
from compaction.edits import Edit
from compaction.messages import Text, ToolCall
from compaction.strategies.base import FULL, StepResult, Strategy
from compaction.view import VERBATIM, View

NAME = "offload"

#: Smaller outputs are not worth retrieving separately. They are shortened only if the prompt then fits,
#: because later steps would remove them.
_MIN_TOKENS = 200

#: Descriptors of even smaller outputs hardly save anything.
_LEAST_TOKENS = 80


def run(view: View, context: Context) -> StepResult:
    evictable = (entry for entry in context.middle(view) if not entry.is_generated)
    fixed = view.tokens - sum(entry.message.tokens for entry in evictable)
    if fixed <= context.ceiling:
        return StepResult(view=view)
    giant = context.budget_tokens * context.policy.offload_share
    edits: list[Edit] = []
    for size, edit in _candidates(view, context):
        if fixed <= (context.goal if size >= giant else context.ceiling):
            break
        edits.append(edit)
        fixed -= edit.tokens_before - edit.tokens_after
    if fixed > context.ceiling:
        edits = [edit for edit in edits if edit.tokens_before >= _MIN_TOKENS]
    edits.sort(key=lambda edit: (edit.position, edit.part or 0))
    return StepResult.of(view, edits)


def _candidates(view: View, context: Context) -> Iterator[tuple[int, Edit]]:
    """Yield the candidates in the tail, largest first: the size and the edit that would offload it."""
    sized: list[tuple[int, int, int, Callable[[str], str], str]] = []
    for output in context.outputs(view):
        if _in_tail(output.position, context) and not output.rule.exempt:
            size = context.size(output.position, output.part)
            shorten: Callable[[str], str] = partial(_described, output, context)
            sized.append(
                (size, output.position, output.part, shorten, "large output in the tail that leaves no room")
            )
    for position, part, value in _giants(view, context):
        size = context.size(position, part)
        if isinstance(value, Text):
            shorten, reason = (
                partial(context.clip, value.text, cap=context.policy.clip_tokens),
                "long text in the tail that leaves no room",
            )
        else:
            shorten = partial(context.shorten, value, size=size)
            reason = "long arguments of a call in the tail that leave no room"
        sized.append((size, position, part, shorten, reason))
    for size, position, part, shorten, reason in sorted(sized, key=lambda item: -item[0]):
        if size < _LEAST_TOKENS:
            return
        edit = context.replace(NAME, position, part, shorten, reason=reason)
        if edit:
            yield size, edit


def _described(output: Output, context: Context, handle: str) -> str:
    """Return the descriptor of an output. A failure remains verbatim, unless it is a giant."""
    text = context.describe(output, handle)
    giant = context.budget_tokens * context.policy.offload_share
    if output.is_error and context.counter.count(text) >= giant:
        return context.clip(text, handle, cap=context.policy.clip_tokens)
    return text


def _in_tail(position: int, context: Context) -> bool:
    return position >= context.tail_first and position not in context.protected


def _giants(view: View, context: Context) -> Iterator[tuple[int, int, Text | ToolCall]]:
    """Yield position, part and content of each text and client's call in the tail that is a giant."""
    giant = context.budget_tokens * context.policy.offload_share
    for entry in view.entries:
        if entry.rule != VERBATIM or not _in_tail(entry.first, context) or entry.message.tokens < giant:
            continue
        for part, value in enumerate(entry.message.parts):
            if isinstance(value, ToolCall) and (value.server or value.fixed):
                continue
            if isinstance(value, Text | ToolCall) and context.size(entry.first, part) >= giant:
                yield entry.first, part, value


STRATEGY = Strategy(
    name=NAME,
    meaning="Very large content in the newest messages, shortened, with a handle that restores it.",
    description="If head and tail alone leave no room, replaces outputs in the tail with descriptors, and "
    "shortens giant texts and arguments of calls, largest first. Never the latest user request.",
    run=run,
    presets=FULL | {"masking"},
)
