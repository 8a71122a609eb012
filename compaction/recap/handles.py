"""The handles that a recap lists, so that the contents of evicted descriptors can still be retrieved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from compaction.recap.values import Item, Recap
from compaction.sizes.tokens import TokenCounter, name_sizes

#: Share of a recap's cap for handles.
HANDLE_SHARE = 0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """A handle, the file, command or tool whose output it retrieves, and the output's position."""

    handle: str
    subject: str
    position: int


def handles_of(recap: Recap | None) -> tuple[Handled, ...]:
    """Return the handles that a recap lists, oldest first."""
    found = [
        Handled(handle=handle, subject=item.text, position=max(item.sources, default=0))
        for item in (recap.entities if recap else ())
        for handle in reversed(item.handles)
    ]
    return tuple(sorted(found, key=lambda handled: handled.position))


def with_handles(
    recap: Recap,
    handles: Iterable[Handled],
    *,
    room: int,
    counter: TokenCounter,
    files: Mapping[str, Item],
) -> Recap:
    """Return the recap with as many of the handles as fit in `room` tokens, newest first.

    `handles` are in chronological order, `files` are the known lines of files. `handles_left_out` counts the
    other handles.
    """
    lines = {item.text: item for item in recap.entities}
    newest = list(reversed(list(handles)))
    sizes = name_sizes(counter)
    sizes.count([handled.handle for handled in newest])
    left_out = 0
    for handled in newest:
        line = lines.get(handled.subject)
        known = line or files.get(handled.subject) or Item(text=handled.subject, sources=(handled.position,))
        room -= sizes[handled.handle] + _line_cost(known, is_new=line is None, counter=counter)
        if room < 0:
            left_out += 1
        else:
            lines[handled.subject] = replace(known, handles=(*known.handles, handled.handle))
    return replace(recap, entities=tuple(lines.values()), handles_left_out=recap.handles_left_out + left_out)


def _line_cost(line: Item, *, is_new: bool, counter: TokenCounter) -> int:
    """Return the tokens of a line that its first handle, or the line itself, adds to the recap."""
    tokens = counter.count("\n handles:") if not line.handles else 0
    return tokens + (counter.count(line.render()) + 1 if is_new else 0)


def merged(*groups: Sequence[Handled]) -> list[Handled]:
    """Return the handles in chronological order, without duplicates."""
    return list({handled.handle: handled for group in groups for handled in group}.values())
