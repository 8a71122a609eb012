"""De-duplicate: of identical tool outputs, replace the older with a pointer to the newest.

Only the content is compared, never the request: a file that was read again after a change has different
content, and removing the second read would leave the stale one.
"""

from __future__ import annotations

from functools import partial

from compaction.context import Context, Output
from compaction.descriptors import pointer
from compaction.edits import Edit
from compaction.strategies.base import FULL, StepResult, Strategy
from compaction.view import View

NAME = "dedupe"

#: Minimum characters of an output. A pointer to a shorter one would save only a few tokens.
_MIN_CHARACTERS = 200


def run(view: View, context: Context) -> StepResult:
    newest: dict[str, Output] = {}
    edits: list[Edit] = []
    for output in reversed(context.outputs(view)):
        if len(output.result.text) < _MIN_CHARACTERS or output.result.media_tokens:
            continue
        later = newest.setdefault(output.result.text, output)
        if later is output or not output.is_editable:
            continue
        edit = context.replace(
            NAME,
            output.position,
            output.part,
            partial(pointer, turn=later.turn, position=later.position),
            reason=f"identical to the output in message {later.position}",
        )
        if edit:
            edits.append(edit)
    edits.reverse()
    return StepResult.of(view, edits)


STRATEGY = Strategy(
    name=NAME,
    meaning="The same output appears again later; this line points to it.",
    description="Replaces the older of two identical tool outputs with a pointer to the newest. Compares the "
    "content, never the request.",
    run=run,
    is_free=True,
    presets=FULL | {"masking"},
)
