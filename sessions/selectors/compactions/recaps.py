"""Read and encode stored recaps.

The lines of a recap are stored permanently, the complete recap only while another one may include it.

The lines repeat the text of the edit that shows the recap, so they compress to almost nothing. The data that
only the next recap needs (how often each name occurred, the names that did not fit) is twice as large as the
text. It is kept for the two newest recaps: one to include, and one to return to after a revert.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db.models import BinaryField, QuerySet
from django.db.models.expressions import RawSQL

from compaction.edits import Edit as EditValue
from compaction.recap import Recap as RecapValue
from compaction.recap.parse import recap_parse
from sessions.models import Compaction, Recap
from sessions.store.edit_texts import TEXTS, text_unpack
from sessions.store.recap_bodies import recap_pack, recap_unpack
from sessions.store.recap_lines import recap_lines_pack, recap_lines_unpack

Line = tuple[str, Sequence[int]]

#: Complete recaps that this process has stored or read last, by their body and text. Reading one from its
#: columns takes a tenth of the time of the plan that continues it. Each takes about 200 KB.
_KEPT = 32
_kept: OrderedDict[tuple[bytes, bytes], RecapValue] = OrderedDict()
_lock = Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecapLines:
    """A recap for display: its text, and the lines of each section with the positions of their sources."""

    first_turn: int
    last_turn: int
    text: str
    sections: Sequence[tuple[str, Sequence[Line]]]

    @classmethod
    def of(cls, recap: RecapValue) -> RecapLines:
        return cls(
            first_turn=recap.first_turn,
            last_turn=recap.last_turn,
            text=recap.render(),
            sections=[
                (title, [(item.render(), item.sources) for item in items])
                for title, items in recap.sections().items()
                if items
            ],
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "first_turn": self.first_turn,
            "last_turn": self.last_turn,
            "text": self.text,
            "sections": self.sections,
        }


def recap_columns(recap: RecapValue, edits: Sequence[EditValue]) -> dict[str, Any]:
    """Return the columns of a recap. `edits` are those of its compaction, in order."""
    shown = next((n for n, edit in enumerate(edits) if edit.strategy == "recap" and edit.text), None)
    text = edits[shown].text.encode() if shown is not None else b""
    body = recap_pack(recap.to_json(), text)
    _keep(body, text, recap)
    return {
        "body": body,
        "lines": recap_lines_pack(RecapLines.of(recap).to_json(), text),
        "edit_ordinal": shown,
    }


def recaps() -> QuerySet[Recap]:
    """Select recaps with the stored texts of their edits, which `recap_lines` and `recap_value` need."""
    return Recap.objects.annotate(texts=RawSQL(_TEXTS, (), ArrayField(BinaryField())))  # noqa: S611


_TEXTS = f"""
SELECT {TEXTS}
  FROM agent_sessions_edit e
 WHERE e.compaction_id = agent_sessions_recap.compaction_id AND e.ordinal = agent_sessions_recap.edit_ordinal
"""  # noqa: S608  a constant is inserted


def recaps_of(session_id: UUID) -> QuerySet[Recap]:
    """Select the recaps of the session's applied compactions, newest first."""
    done = recaps().filter(compaction__session=session_id, compaction__state=Compaction.State.DONE)
    return done.order_by("-compaction__number", "-version")


def recap_newest(compaction: Compaction) -> Recap | None:
    """Return the newest version of a compaction's recap, or None."""
    return recaps().filter(compaction=compaction).order_by("-version").first()


def recap_lines(row: Recap) -> RecapLines:
    """Return the text and lines of a recap. `row` comes from `recaps()`."""
    if row.lines is None:
        return RecapLines.of(recap_value(row))
    return RecapLines(**recap_lines_unpack(row.lines, _shown(row)))


def recap_value(row: Recap) -> RecapValue:
    """Return the recap for the next one to include. `row` comes from `recaps()`.

    If the complete recap was dropped, its text is parsed as if a user had written it.
    """
    if row.body is not None:
        return _complete(bytes(row.body), _shown(row))
    stored = recap_lines(row)
    newest = max((at for _, lines in stored.sections for _, sources in lines for at in sources), default=0)
    previous = RecapValue(first_turn=stored.first_turn, last_turn=stored.last_turn)
    return recap_parse(stored.text, previous=previous, position=newest)


def _complete(body: bytes, text: bytes) -> RecapValue:
    recap = _kept.get((body, text))
    if recap is None:
        recap = RecapValue.from_json(recap_unpack(body, text))
        _keep(body, text, recap)
    return recap


def _keep(body: bytes, text: bytes, recap: RecapValue) -> None:
    with _lock:
        _kept[body, text] = recap
        _kept.move_to_end((body, text))
        if len(_kept) > _KEPT:
            _kept.popitem(last=False)


def _shown(row: Recap) -> bytes:
    """Return the text of the recap's edit, which its columns repeat."""
    texts = row.texts  # type: ignore[attr-defined]
    return text_unpack(texts) if texts is not None else b""
