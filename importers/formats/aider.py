"""Chat histories of aider: `.aider.chat.history.md` in a project's folder.

The file contains all chats about a project, one after another, as Markdown. Lines that the user typed begin
with `####`, those that aider printed with `>`, and both end with two spaces. Everything else is from the
model. The sizes of calls are rounded. There are no tool calls: the model's edits are text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from itertools import count

from compaction.messages import Usage
from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.jsonlines import lines_of, text_bytes
from importers.turns import Answer, TurnBuilder
from importers.values import disjoint_usage, microusd_of, request_of, time_of, title_of

#: The name of the file.
HISTORY_NAME = ".aider.chat.history.md"

_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_START_BYTES = re.compile(rb"^# aider chat started at \d{4}-\d\d-\d\d ", re.MULTILINE)
_FIRST_BYTES = 1 << 20  # a file may begin in the middle of a chat

_USER, _PRINTED, _END = "#### ", "> ", "  "

_VERSION = re.compile(r"Aider (v[\w.+-]+)")
_MODEL = re.compile(r"(?:Main model|Models?): (\S+?)⚡? with ")
_TOKENS = re.compile(r"([\d.,]+)([kM]?) (sent|cache write|cache hit|cached|received)\b")
_COST = re.compile(r"Cost: \$([\d.]+) (?:message|request|send)\b")
_FACTORS = {"": 1, "k": 1_000, "M": 1_000_000}

#: Commands that send the text after them, those that remove the conversation, and aider's own messages.
_SENDING = re.compile(r"/(?:ask|code|architect|context)\s+(?=\S)")
_CLEARING = ("/clear", "/reset")
_INSERTED = ("# Fix any errors below, if possible.",)


class AiderImporter:
    """Reads chat histories of aider."""

    name = "aider"
    label = "aider chat history (.aider.chat.history.md)"

    def recognizes(self, log: LogFile) -> bool:
        return bool(_START_BYTES.search(log.data[:_FIRST_BYTES])) and log.data.lstrip()[:1] not in (
            b"{",
            b"[",
        )

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        names: set[str] = set()
        chat = _Chat(None)
        for number, line in enumerate(lines_of(text_bytes(log.data)), start=1):
            text = line.decode("utf-8", "replace").rstrip("\r")
            if "\ufffd" in text and "\ufffd".encode() not in line:
                yield Damage(file=log.name, line=number, reason="invalid UTF-8 was replaced")
            if start := _START.fullmatch(text):
                yield from chat.sessions(log, names)
                chat = _Chat(time_of(start[1]))
            else:
                chat.take(text)
        yield from chat.sessions(log, names)


class _Chat:
    """One chat while its lines are read."""

    def __init__(self, started_at: datetime | None) -> None:
        self._started_at = started_at
        self._turns = TurnBuilder()
        self._typed: list[str] = []
        self._answer: list[str] = []
        self._command = ""  #: a command that may send what it printed
        self._is_open = False  #: the last printed line continues on the next one
        self._last: Answer | None = None  #: the answer whose size has not been read yet
        self._ids = map("message-{}".format, count(1))
        self._opening = self._first_words = self._model = self._version = ""

    def take(self, line: str) -> None:
        if self._is_open:
            self._is_open = not line.endswith(_END)
            self._note(line)
        elif self._is_typed(line):
            self._end_answer()
            self._typed.append(line[len(_USER) :])
        elif self._is_printed(line):
            self._end_answer()
            self._end_typed()
            self._is_open = not line.endswith(_END)
            self._note(line)
        elif line.strip() or self._answer:
            self._end_typed()
            self._answer.append(line)

    def sessions(self, log: LogFile, names: set[str]) -> Iterator[ImportedSession]:
        """Yield the chat if it contains a question or an answer."""
        self._end_answer()
        self._end_typed()
        turns = self._turns.turns()
        if not turns or self._started_at is None:
            return
        # The file has no ids. Chats of other projects may begin at the same time.
        digest = hashlib.sha256(self._opening.encode()).hexdigest()[:8]
        name = f"aider-{self._started_at:%Y%m%d-%H%M%S}-{digest}"
        number = next(n for n in range(1, len(names) + 2) if (f"{name}-{n}" if n > 1 else name) not in names)
        name = f"{name}-{number}" if number > 1 else name
        names.add(name)
        folder = str(log.path.parent) if log.path.is_absolute() and log.path.name == HISTORY_NAME else ""
        metadata = {"cwd": folder, "client_version": self._version}
        yield ImportedSession(
            external_id=name,
            format="openai",
            agent="aider",
            turns=turns,
            model=self._model,
            title=title_of(self._first_words),
            started_at=self._started_at,
            metadata={key: value for key, value in metadata.items() if value},
        )

    def _is_typed(self, line: str) -> bool:
        """Return whether the user typed the line. It may be a heading in an answer, or at its beginning."""
        if not line.startswith(_USER) or line.endswith(_END):
            return line.startswith(_USER)
        return not self._answer and not (self._typed and self._typed[-1].endswith(_END))

    def _is_printed(self, line: str) -> bool:
        """Return whether aider printed the line. In an answer, it may be a quotation."""
        if not line.startswith(_PRINTED.strip()):
            return False
        if line.endswith(_END) or line.startswith("> Tokens: "):
            return True
        return not self._answer and (not self._typed or self._typed[0].startswith(("/", "!")))

    def _note(self, line: str) -> None:
        """Read the model, and the size and cost of the last call, from a printed line."""
        if found := _VERSION.search(line):
            self._version = self._version or found[1]
        elif found := _MODEL.search(line):
            self._model = found[1]
        elif line.startswith("> Tokens: ") and self._last and not self._last.usage:
            self._last.usage = _usage(line)
        if (cost := _COST.search(line)) and self._last:
            self._last.cost_microusd = microusd_of(cost[1]) or None
            self._last = None

    def _end_typed(self) -> None:
        if not self._typed:
            return
        lines = [line.removesuffix(_END) for line in self._typed]
        text = "\n".join("" if line == "<blank>" else line for line in lines).strip()
        self._typed = []
        self._command = ""
        if text.split(" ", 1)[0] in _CLEARING:
            self._turns.compacted(ClientCompaction(trigger="clear"))
        elif sending := _SENDING.match(text):
            self._ask(text[sending.end() :])
        elif text.startswith(("/", "!")):
            self._command = text
        elif text:
            self._ask(text)

    def _ask(self, text: str) -> None:
        self._opening = self._opening or text
        is_meta = text.startswith(_INSERTED)
        body = {"role": "user", "content": text}
        self._turns.add(ImportedMessage(body=body, source_id=next(self._ids), is_meta=is_meta))
        if not is_meta:
            self._first_words = request_of(self._first_words, text)

    def _end_answer(self) -> None:
        text = "\n".join(self._answer).strip()
        self._answer = []
        if not text:
            return
        if self._command:
            self._ask(self._command)
            self._command = ""
        if self._opening:  # what precedes the first question is output of a program
            self._last = Answer(
                body={"role": "assistant", "content": text}, source_id=next(self._ids), model=self._model
            )
            self._turns.answer(self._last)


def _usage(line: str) -> Usage | None:
    """Return the rounded usage. `sent` includes cached tokens, and those written to the cache twice."""
    counts: dict[str, int] = {}
    for number, unit, kind in _TOKENS.findall(line):
        try:
            counts.setdefault(kind, round(float(number.replace(",", "")) * _FACTORS[unit]))
        except ValueError:
            return None
    sent, write = counts.get("sent", 0), counts.get("cache write", 0)
    read = counts.get("cache hit", counts.get("cached", 0))
    rest = sent - 2 * write - read
    uncached = rest if rest >= 0 else max(sent - write, 0)
    return disjoint_usage(uncached=uncached, read=read, write=write, output=counts.get("received", 0))
