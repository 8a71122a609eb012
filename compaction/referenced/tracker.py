"""Detect re-references: uses of content that the prompt no longer shows.

    tracker.add_edits(edits) after a compaction, tracker.add_message(message) for each later message

A name that a later message shows again (a tool output, a user's text) is no longer hidden. If the assistant
uses a hidden name, that is a reference to the edit that hid it. Each identifier of a message is looked up
once, in a table of at most `MAX_NAMES`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from compaction.edits import Edit
from compaction.identifiers.texts import message_references
from compaction.messages import JSON, Message, Role, ToolCall
from compaction.tools.actions import Kind, action_of

#: Maximum names tracked per session. The oldest are dropped first.
MAX_NAMES = 4_000

#: Maximum handles and read files tracked per session. The oldest are dropped first.
MAX_EDITS = 1_000

#: The agent tool that searches removed messages.
SEARCH_TOOL = "search_history"

#: Maximum components of a path that counts as a name.
_MAX_COMPONENTS = 20

#: Number of turns after a reference in which a retrieval of the content counts as the reaction.
LATER_TURNS = 3


class How(StrEnum):
    """The agent's reaction to missing content."""

    SILENT = "silent"  #: none: it continued from memory, or invented the content
    EXPANDED = "expanded"  #: it retrieved the content by its handle, or searched the history
    READ_AGAIN = "read_again"  #: it read the file again


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedEdit:
    """A tracked edit. `key` is the caller's id for it; `paths` are the files whose content it hid."""

    key: int
    edit: Edit
    paths: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The first use of content that the edit `key` hid: in `turn`, by `name`."""

    key: int
    turn: int
    name: str
    how: How


@dataclass(slots=True)
class ReferenceTracker:
    """The tracking state of one session.

    `names` maps hidden names to the edits that hid them; `handles` and `paths` identify their contents;
    `recent` are references to which the agent may still react; `flagged` are the edits with a reference.
    """

    names: dict[str, int] = field(default_factory=dict)
    handles: dict[str, int] = field(default_factory=dict)
    paths: dict[str, list[int]] = field(default_factory=dict)
    recent: list[Reference] = field(default_factory=list)
    flagged: set[int] = field(default_factory=set)

    def add_edits(self, edits: Sequence[WatchedEdit]) -> None:
        """Add the edits of a compaction, with their references."""
        for watched in edits:
            for name in watched.edit.references:
                self.names.pop(name, None)
                self.names[name] = watched.key
            if watched.edit.handle:
                self.handles[watched.edit.handle] = watched.key
            for path in watched.paths:
                self.paths.setdefault(path, []).append(watched.key)
        _keep_newest(self.names, MAX_NAMES)
        _keep_newest(self.handles, MAX_EDITS)
        _keep_newest(self.paths, MAX_EDITS)

    def add_message(self, message: Message) -> list[Reference]:
        """Return the references of the next message, and earlier ones to which its calls react."""
        mentioned = message_references(message)
        found: list[Reference] = []
        if message.role is Role.ASSISTANT:
            found = [*self._used(message, mentioned), *self._retrieved(message)]
        for name in mentioned:
            for known in (name, *_parts_of(name)):
                self.names.pop(known, None)
        return found

    def _used(self, message: Message, mentioned: frozenset[str]) -> Iterator[Reference]:
        # The longest name first. Names of the same length are in order, so that every process finds the same.
        for name in sorted(mentioned & self.names.keys(), key=lambda name: (-len(name), name)):
            key = self.names[name]
            if key not in self.flagged:
                reference = Reference(key=key, turn=message.turn, name=name, how=_how(message, name))
                self.flagged.add(key)
                if reference.how is How.SILENT:
                    self.recent.append(reference)
                yield reference

    def _retrieved(self, message: Message) -> Iterator[Reference]:
        """Yield references whose content the calls retrieve. An expanded handle is a reference, too."""
        self.recent = [known for known in self.recent if message.turn - known.turn <= LATER_TURNS]
        for call in message.tool_calls:
            yield from self._expanded(message, call)
            yield from self._read_again(call)

    def _expanded(self, message: Message, call: ToolCall) -> Iterator[Reference]:
        for handle in [handle for handle in self.handles if handle in call.arguments]:
            key = self.handles.pop(handle)
            known = self._recent_of(key)
            if known is not None:
                yield Reference(key=key, turn=known.turn, name=known.name, how=How.EXPANDED)
            elif key not in self.flagged:
                self.flagged.add(key)
                yield Reference(key=key, turn=message.turn, name=handle, how=How.EXPANDED)

    def _read_again(self, call: ToolCall) -> Iterator[Reference]:
        action = action_of(call)
        if action.kind is not Kind.READ:
            return
        for key in self.paths.get(action.path, ()):
            known = self._recent_of(key)
            if known is not None:
                yield Reference(key=key, turn=known.turn, name=known.name, how=How.READ_AGAIN)

    def _recent_of(self, key: int) -> Reference | None:
        return next((known for known in self.recent if known.key == key), None)

    def to_json(self) -> dict[str, JSON]:
        return {
            "names": self.names,
            "handles": self.handles,
            "paths": self.paths,
            "recent": [[known.key, known.turn, known.name] for known in self.recent],
            "flagged": sorted(self.flagged),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, JSON]) -> ReferenceTracker:
        """Return the state from the JSON of `to_json`."""
        return cls(
            names=dict(data["names"]),
            handles=dict(data["handles"]),
            paths={path: list(keys) for path, keys in data["paths"].items()},
            recent=[
                Reference(key=key, turn=turn, name=name, how=How.SILENT) for key, turn, name in data["recent"]
            ],
            flagged=set(data["flagged"]),
        )


def _how(message: Message, name: str) -> How:
    """Return how the message reacts to the hidden name that it uses."""
    for call in message.tool_calls:
        if call.name.endswith(SEARCH_TOOL) and name in call.arguments:
            return How.EXPANDED
        action = action_of(call)
        if action.kind is Kind.READ and f"/{action.path}".endswith(f"/{name.lstrip('/')}"):
            return How.READ_AGAIN
    return How.SILENT


def _parts_of(path: str) -> Iterator[str]:
    """Yield the folders and endings of a path: `a/b/c.py` also shows `a/b` and `b/c.py`."""
    pieces = path.split("/")
    if len(pieces) > _MAX_COMPONENTS or "://" in path:
        return
    for index in range(1, len(pieces)):
        yield "/".join(pieces[:index])
        yield "/".join(pieces[index:])


def _keep_newest(table: dict[str, JSON], maximum: int) -> None:
    for name in list(table)[: max(0, len(table) - maximum)]:
        del table[name]
