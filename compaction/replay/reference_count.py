"""Count the references of a session's answers, and find those that are not in the served prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compaction.replay.mentions import PromptMentions
from compaction.replay.result import MAX_LOST, Lost, References
from compaction.replay.served import Served
from compaction.replay.transcript import RecordedCall, Transcript

#: Returns whether the first hits of a search for a name, among the messages before a position, include the
#: message at another position.
Search = Callable[[str, int, int], bool]

#: Maximum number of lost references of a session that are searched for. A search takes milliseconds.
MOST_SEARCHES = 40


class ReferenceCount:
    """The references so far: identifiers that an answer uses and that an earlier message mentions.

    `first_lost` is the first one that no handle retrieves, `examples` are the first missing ones. The first
    lost ones of usable prompts are searched for with `search`.
    """

    def __init__(self, transcript: Transcript, served: Served, *, search: Search | None = None) -> None:
        self._transcript, self._served, self._search = transcript, served, search
        self._start = self._scanned = 0
        self._last_seen: dict[str, int] = {}
        self.total = References()
        self.first_lost: Lost | None = None
        self.examples: list[Lost] = []

    def count(self, call: RecordedCall, prompt: PromptMentions, *, usable: bool) -> int:
        """Count the references of the answer. Return the lost ones; all of them are lost unless `usable`."""
        if call.start != self._start:
            self._start = self._scanned = call.start
            self._last_seen.clear()
        references = self._transcript.references
        for position in range(self._scanned, call.answer):
            self._last_seen.update(dict.fromkeys(references[position], position))
        self._scanned = call.answer
        used = [name for name in references[call.answer] if name in self._last_seen]
        missing = sorted(name for name in used if not usable or name not in prompt)
        hidden = [name for name in missing if usable and name in self._served.recoverable()]
        lost = [name for name in missing if name not in set(hidden)]
        self.total += References(
            used=len(used), kept=len(used) - len(missing), recoverable=len(hidden), lost=len(lost)
        )
        if usable:
            self._search_for(lost, call)
        for name in lost + hidden:
            why = "hidden" if name in hidden else "evicted" if usable else "over"
            self._note(call, name, why)
        return len(lost)

    def _search_for(self, lost: Sequence[str], call: RecordedCall) -> None:
        if self._search is None:
            return
        for name in lost[: MOST_SEARCHES - self.total.searched]:
            found = self._search(name, call.answer, self._last_seen[name])
            self.total += References(searched=1, found=int(found))

    def _note(self, call: RecordedCall, name: str, why: str) -> None:
        position = self._last_seen[name]
        seen_turn = self._transcript.messages[position].turn
        lost = Lost(turn=call.turn, name=name, position=position, seen_turn=seen_turn, why=why)
        if self.first_lost is None and why != "hidden":
            self.first_lost = lost
        if len(self.examples) < MAX_LOST:
            self.examples.append(lost)
