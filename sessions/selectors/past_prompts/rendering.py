"""The JSON of a past prompt, as sent to the provider."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from compaction.capabilities import capabilities_of
from compaction.edits import Edit as EditValue
from compaction.edits import Op
from compaction.view import apply
from compaction.view.components import TOOLS, shed_names
from sessions.models import AgentSession
from sessions.selectors.past_prompts.outline import Outline
from sessions.selectors.transcripts.rows import Span, messages_load, spans_of
from sessions.store.edit_texts import edit_texts
from sessions.store.prompt_bytes import RequestParts, messages_of_view, request_fields


def past_prompt_json(*, session: AgentSession, outline: Outline) -> dict[str, Any]:
    """Return `system`, `messages` and `tools`, ready for orjson. Reads all messages in the prompt."""
    rows = messages_load(session.pk, _spans(outline))
    view = apply(_edits(outline), [row.value(session.format) for row in rows])
    raw = {row.position: row.data for row in rows}
    messages, after = messages_of_view(view, raw, session.format)
    preamble = outline.preamble
    return request_fields(
        messages,
        RequestParts(
            stored_format=session.format,
            format=session.format,
            system=preamble.system if preamble else None,
            tools=preamble.tools if preamble and not _sheds_tools(outline) else None,
            continuation=after,
            capabilities=capabilities_of((outline.turn and outline.turn.model) or session.model),
        ),
    )


def _spans(outline: Outline) -> list[Span]:
    """Return the spans of the messages in the prompt, in order."""
    spans = spans_of(entry.first for entry in outline.entries if not entry.is_generated)
    return [*spans, (outline.run.first, outline.run.end)] if outline.run is not None else spans


def _edits(outline: Outline) -> list[EditValue]:
    changed = [edit.id for edit in outline.edits if edit.value.op in (Op.REPLACE, Op.STRIP)]
    texts = edit_texts(changed)
    return [
        replace(edit.value, text=texts[edit.id]) if edit.id in texts else edit.value for edit in outline.edits
    ]


def _sheds_tools(outline: Outline) -> bool:
    return TOOLS in shed_names(edit.value for edit in outline.edits)
