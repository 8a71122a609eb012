"""De-duplicate: of identical tool outputs the older becomes a pointer to the newest.

Compared is the content, never the request alone: the same file read again after a change is other content,
and eliding the second read would leave the stale one.
"""

from __future__ import annotations

from compaction.context import Context, Output
from compaction.descriptors import pointer
from compaction.edits import Edit
from compaction.view import View

NAME = "dedupe"
MEANING = "The same output stands again later; a pointer leads there."

#: Shorter outputs cost less than a pointer.
_MIN_CHARACTERS = 200


def run(view: View, context: Context) -> tuple[View, tuple[Edit, ...]]:
    newest: dict[str, Output] = {}
    edits: list[Edit] = []
    for output in reversed(context.outputs(view)):
        if len(output.result.text) < _MIN_CHARACTERS or output.result.media_tokens:
            continue
        again = newest.setdefault(output.result.text, output)
        if again is output or output.rule.exempt or not context.in_middle(output.position):
            continue
        handle = context.make_handle(output.position, output.part)
        edit = context.replace(
            NAME,
            output.position,
            output.part,
            pointer(handle, turn=again.turn, position=again.position),
            handle=handle,
            reason=f"identical to the output in message {again.position}",
        )
        if edit:
            edits.append(edit)
    edits.reverse()
    return view.with_edits(edits), tuple(edits)
