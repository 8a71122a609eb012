"""Supersede: replace a read of a file that was later read again or changed.

A later read of a part of the file does not supersede a read of the whole; a later change makes every earlier
read stale. The handle restores the original output.
"""

from __future__ import annotations

from functools import partial

from compaction.context import Context, Output
from compaction.descriptors import superseded
from compaction.edits import Edit
from compaction.strategies.base import FULL, StepResult, Strategy
from compaction.tools.actions import Kind
from compaction.view import View

NAME = "supersede"

_VERBS = {Kind.READ: "read again", Kind.EDIT: "edited", Kind.WRITE: "written"}


def run(view: View, context: Context) -> StepResult:
    changed: dict[str, Output] = {}
    read: dict[tuple[str, str], Output] = {}
    edits: list[Edit] = []
    for output in reversed(context.outputs(view)):
        action = output.action
        if not action.path or output.is_error:
            continue
        if action.kind in (Kind.EDIT, Kind.WRITE):
            changed.setdefault(action.path, output)
            continue
        if not output.is_read:
            continue
        again = read.get((action.path, "")), read.get((action.path, action.span))
        later = _latest(changed.get(action.path), *again)
        read.setdefault((action.path, action.span), output)
        if later is None or not output.is_editable:
            continue
        verb = _VERBS.get(later.action.kind, "read again")
        edit = context.replace(
            NAME,
            output.position,
            output.part,
            partial(superseded, action, turn=later.turn, verb=verb),
            reason=f"{action.path} was {verb} at turn {later.turn}",
        )
        if edit:
            edits.append(edit)
    edits.reverse()
    return StepResult.of(view, edits)


def _latest(*candidates: Output | None) -> Output | None:
    found = [output for output in candidates if output is not None]
    return max(found, key=lambda output: output.position, default=None)


STRATEGY = Strategy(
    name=NAME,
    meaning="The file was read again or changed later, so this read was replaced with one line.",
    description="Replaces a read of a file that was later read again or changed. A later read of a part does "
    "not supersede a read of the whole.",
    run=run,
    is_free=True,
    presets=FULL | {"masking"},
)
