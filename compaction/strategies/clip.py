"""Clip: an output over its cap keeps its head and tail, with a marker between them.

Never a file read: a file that looks whole and is not gets edited wrongly. Never an error.
"""

from __future__ import annotations

from compaction.context import Context, Output
from compaction.descriptors import clip
from compaction.edits import Edit
from compaction.view import View

NAME = "clip"
MEANING = "Beginning and end of a long tool output, with a handle that brings back the rest."


def run(view: View, context: Context) -> tuple[View, tuple[Edit, ...]]:
    edits = (_clipped(output, context) for output in context.outputs(view))
    return context.shortened(view, edits)


def _clipped(output: Output, context: Context) -> Edit | None:
    cap = output.rule.clip_tokens or context.policy.clip_tokens
    if output.rule.exempt or output.is_read or not context.in_middle(output.position):
        return None
    if context.size(output.position, output.part) <= cap or output.is_error:
        return None
    handle = context.make_handle(output.position, output.part)
    text = clip(
        output.result.text,
        cap=cap,
        head_share=context.policy.clip_head,
        handle=handle,
        counter=context.counter,
    )
    return context.replace(
        NAME, output.position, output.part, text, handle=handle, reason=f"over {cap} tokens"
    )
