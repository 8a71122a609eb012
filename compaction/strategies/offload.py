"""Offload: replace a giant output in the tail, which no other step may touch, with a descriptor and a handle.

Only if the head and the tail alone leave no room: what the model has just requested matters more than what it
requested before. Giants first; then, while the prompt still does not fit, the next largest.
"""

from __future__ import annotations

from collections.abc import Iterator

from compaction.context import Context
from compaction.edits import Edit
from compaction.strategies.base import FULL, StepResult, Strategy
from compaction.view import View

NAME = "offload"

#: Smaller outputs are not worth retrieving separately.
_MIN_TOKENS = 200


def run(view: View, context: Context) -> StepResult:
    fixed = view.tokens - sum(entry.message.tokens for entry in context.middle(view))
    if fixed <= context.ceiling:
        return StepResult(view=view)
    giant = context.budget * context.settings.offload_share
    edits: list[Edit] = []
    for size, edit in _candidates(view, context):
        if fixed <= (context.goal if size >= giant else context.ceiling):
            break
        edits.append(edit)
        fixed -= edit.tokens_before - edit.tokens_after
    edits.sort(key=lambda edit: (edit.position, edit.part or 0))
    return StepResult.of(view, edits)


def _candidates(view: View, context: Context) -> Iterator[tuple[int, Edit]]:
    """Yield the outputs of the tail, largest first: the size and the edit that would offload it."""
    sized = [
        (context.size(output.position, output.part), output)
        for output in context.outputs(view)
        if output.position >= context.tail_first and output.position not in context.pinned
    ]
    for size, output in sorted(sized, key=lambda pair: -pair[0]):
        if size < _MIN_TOKENS:
            return
        handle = context.make_handle(output.position, output.part)
        text = context.describe(output, handle)
        reason = "an output of the tail that leaves no room"
        edit = context.replace(NAME, output.position, output.part, text, handle=handle, reason=reason)
        if edit:
            yield size, edit


STRATEGY = Strategy(
    name=NAME,
    meaning="A giant output among the newest messages, replaced with one line and a handle.",
    description="If head and tail alone leave no room, replaces outputs of the tail with descriptors, "
    "largest first.",
    run=run,
    presets=FULL | {"masking"},
)
