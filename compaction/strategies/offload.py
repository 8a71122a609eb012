"""Offload: a giant in the tail, which no window can touch, becomes a descriptor with a handle.

Only where the head and the tail alone leave no room: what the model has just asked for is worth more
than what it asked for before. Giants first, then, while the prompt still would not fit, the next largest.
"""

from __future__ import annotations

from collections.abc import Iterator

from compaction.context import Context
from compaction.edits import Edit
from compaction.view import View

NAME = "offload"
MEANING = "A giant output among the newest messages, described in a few lines, with a handle."

#: Smaller outputs are not worth a page of their own.
_LEAST = 200


def run(view: View, context: Context) -> tuple[View, tuple[Edit, ...]]:
    fixed = view.tokens - sum(entry.message.tokens for entry in context.middle(view))
    if fixed <= context.ceiling:
        return view, ()
    giant = context.budget * context.policy.offload_share
    edits: list[Edit] = []
    for size, edit in _candidates(view, context):
        if fixed <= (context.goal if size >= giant else context.ceiling):
            break
        edits.append(edit)
        fixed -= edit.tokens_before - edit.tokens_after
    edits.sort(key=lambda edit: (edit.position, edit.part or 0))
    return view.with_edits(edits), tuple(edits)


def _candidates(view: View, context: Context) -> Iterator[tuple[int, Edit]]:
    """Outputs of the tail, largest first, with the edit that would offload each."""
    sized = [
        (context.size(output.position, output.part), output)
        for output in context.outputs(view)
        if output.position >= context.tail_first and output.position not in context.pinned
    ]
    for size, output in sorted(sized, key=lambda pair: -pair[0]):
        if size < _LEAST:
            return
        handle = context.make_handle(output.position, output.part)
        text = context.describe(output, handle)
        reason = "an output of the tail that leaves no room"
        edit = context.replace(NAME, output.position, output.part, text, handle=handle, reason=reason)
        if edit:
            yield size, edit
