"""An importer for diaries: a line `# diary NAME`, then `user: …` and `model: …` in turn."""

from __future__ import annotations

from collections.abc import Iterator

from importers.base import Damage, ImportedMessage, ImportedSession, LogFile
from importers.turns import Answer, TurnBuilder

_MARK = b"# diary "


class DiaryImporter:
    """Reads diaries."""

    name = "diary"
    label = "Diary (text)"

    def recognizes(self, log: LogFile) -> bool:
        return log.data.startswith(_MARK)

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        title, *lines = log.data.decode().splitlines()
        turns = TurnBuilder()
        for number, line in enumerate(lines, start=2):
            role, separator, content = line.partition(": ")
            if not separator:
                yield Damage(file=log.name, line=number, reason="not a diary entry")
            elif role == "model":
                body = {"role": "assistant", "content": content}
                turns.answer(Answer(body=body, source_id=f"line-{number}"))
            else:
                turns.add(
                    ImportedMessage(body={"role": role, "content": content}, source_id=f"line-{number}")
                )
        yield ImportedSession(
            external_id=title.removeprefix(_MARK.decode()),
            format="anthropic",
            agent="diarist",
            turns=turns.turns(),
        )
