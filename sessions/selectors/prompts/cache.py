"""Prompts that this process has read, so that the next fetch reads only the messages that follow.

Until its edits change, a prompt only grows at its end: a cached one is the beginning of the next.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple
from uuid import UUID

from sessions.store.prompt_bytes import PromptMessages

#: Maximum size of the cached prompts of a process, and the size of a message in addition to its JSON, which
#: they contain twice (bytes).
_MAX_BYTES = 16 * 1024 * 1024
_MESSAGE_BYTES = 700


class PromptVersion(NamedTuple):
    """Identifies the edits in force and the omitted messages."""

    edits_revision: int
    compaction_count: int
    snapshot_end: int
    omitted_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedPreamble:
    """The system prompt and the tools as JSON, and their version among those of the session."""

    version: int
    system: bytes | None
    tools: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedPrompt:
    """The messages of a prompt up to the position `end`. The last one is unchanged by edits.

    `row` identifies the version of the session's row from which it was read (see `PromptState.row`).
    """

    version: PromptVersion
    row: tuple[str, str]
    end: int
    preamble: CachedPreamble
    messages: PromptMessages

    @property
    def size(self) -> int:
        """The approximate memory in bytes."""
        preamble = len(self.preamble.system or b"") + len(self.preamble.tools or b"")
        joined = len(self.messages.joined.data)
        return preamble + 2 * joined + _MESSAGE_BYTES * len(self.messages.pieces)


class PromptCache:
    """The prompts that were fetched most recently, by session."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._prompts: OrderedDict[UUID, CachedPrompt] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, session_id: UUID) -> CachedPrompt | None:
        """Return the cached prompt of a session. It may be out of date."""
        with self._lock:
            if (known := self._prompts.get(session_id)) is not None:
                self._prompts.move_to_end(session_id)
            return known

    def find(self, session_id: UUID, *, version: PromptVersion, end: int) -> CachedPrompt | None:
        """Return the cached prompt if the session's prompt up to `end` begins with it."""
        known = self.get(session_id)
        return known if known is not None and known.version == version and known.end <= end else None

    def keep(self, session_id: UUID, prompt: CachedPrompt) -> None:
        """Cache a prompt, and remove the least recently fetched ones beyond the maximum size."""
        with self._lock:
            if (replaced := self._prompts.pop(session_id, None)) is not None:
                self._bytes -= replaced.size
            self._prompts[session_id] = prompt
            self._bytes += prompt.size
            while self._bytes > self._max_bytes:
                self._bytes -= self._prompts.popitem(last=False)[1].size

    def clear(self) -> None:
        with self._lock:
            self._prompts.clear()
            self._bytes = 0


prompt_cache = PromptCache()
