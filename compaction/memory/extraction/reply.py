"""An extraction: its request, and the suggestions in the reply. Invalid suggestions are dropped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from compaction.errors import SummaryMalformed
from compaction.identifiers.extract import references
from compaction.memory.extraction.prompt import extraction_request, fields_of, numbered
from compaction.memory.extraction.suggestions import MAX_ITEM, MAX_REASON, MAX_SUGGESTIONS, Step, Suggestion
from compaction.memory.origins import Key, Notes
from compaction.memory.schema import Schema
from compaction.messages import JSON, Message
from compaction.recap.reply import Source
from compaction.structured_output import Request

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

#: Steps that need a text, with its maximum length in characters.
_TEXTS: Mapping[Step, int] = {Step.ADD: MAX_ITEM, Step.REPLACE: MAX_ITEM, Step.STALE: MAX_REASON}


@dataclass(frozen=True, kw_only=True)
class Extraction:
    """New messages to read, and the notes before them.

    `dismissed` are items that were removed from the notes.
    """

    messages: Sequence[Message]
    notes: Notes
    schema: Schema
    dismissed: Sequence[str] = ()

    @property
    def request(self) -> Request:
        return extraction_request(self.messages, self.notes, schema=self.schema, dismissed=self.dismissed)

    def suggestions(self, answer: Mapping[str, JSON]) -> tuple[Suggestion, ...]:
        """Return the valid suggestions that contain only identifiers from the messages or the notes.

        Raises SummaryMalformed if the reply has no list of operations.
        """
        operations = answer.get("operations")
        if not isinstance(operations, list):
            raise SummaryMalformed("the reply has no list of operations")
        return tuple(self._parse(operations[:MAX_SUGGESTIONS]))

    def _parse(self, operations: Sequence[JSON]) -> Iterator[Suggestion]:
        for data in operations:
            suggestion = self._suggestion(data) if isinstance(data, dict) else None
            if suggestion is not None and self._is_known(suggestion.text):
                yield suggestion

    def _suggestion(self, data: Mapping[str, JSON]) -> Suggestion | None:
        op, text = data.get("op"), data.get("text")
        if op not in list(Step) or not isinstance(text, str):
            return None
        step = Step(op)
        key = self._key(step, data)
        line = " ".join(text.split()) if step in _TEXTS else ""
        if key is None or (step in _TEXTS and not _is_text(line, _TEXTS[step])):
            return None
        turn, position = self._place(data.get("message"))
        return Suggestion(step=step, key=key, text=line, turn=turn, position=position)

    def _key(self, step: Step, data: Mapping[str, JSON]) -> Key | None:
        if step is Step.ADD:
            name = data.get("field")
            return (name, "") if isinstance(name, str) and name in fields_of(self.schema) else None
        item = data.get("item")
        return self._numbered.get(item) if isinstance(item, str) else None

    def _place(self, position: JSON) -> tuple[int, int | None]:
        """Return the turn and position of the named message, or the last turn if it is unknown."""
        for message in self.messages:
            if message.position == position:
                return message.turn, message.position
        return max((message.turn for message in self.messages), default=0), None

    def _is_known(self, text: str) -> bool:
        return all(map(self._source.contains, references(text)))

    @cached_property
    def _numbered(self) -> Mapping[str, Key]:
        return numbered(self.notes)

    @cached_property
    def _source(self) -> Source:
        """The messages and notes. An identifier that is in neither is invented."""
        return Source.of(self.messages, None, self.notes.memory.render())


def _is_text(line: str, max_length: int) -> bool:
    return len(line) <= max_length and any(map(str.isalnum, line)) and not _CONTROL.search(line)
