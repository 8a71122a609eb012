"""Two texts compared line by line, unified or side by side. Only the changed parts are displayed."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeVar

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from sessions.pages.text import visible

#: Pairs of lines that are compared. Texts with more are compared as a whole, apart from the lines that both
#: begin and end with.
_COMPARED = 1_500**2
#: Unchanged lines around a change, lines of a change that are not folded, and lines that are displayed.
_CONTEXT, _OPEN, _MOST = 3, 10, 500

#: The kind of a line and its sign.
_REMOVED, _ADDED, _SAME = ("removed", "−"), ("added", "+"), ("same", " ")

Row = TypeVar("Row")
Pair = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Lines that are equal in both texts, or that replace each other."""

    is_same: bool
    old: Sequence[str]
    new: Sequence[str]


def diff_html(old: str, new: str, *, is_unified: bool) -> SafeString:
    """Return the changes of a text as HTML."""
    sections = _sections(visible(old).splitlines(), visible(new).splitlines())
    rows = (_html(section, at, len(sections), is_unified) for at, section in enumerate(sections))
    kind = "unified" if is_unified else "side"
    return format_html('<div class="text-diff {}">{}</div>', kind, SafeString("".join(rows)))


def _sections(old: Sequence[str], new: Sequence[str]) -> list[Section]:
    start = _shared(zip(old, new, strict=False))
    end = _shared(zip(reversed(old[start:]), reversed(new[start:]), strict=False))
    middle_old, middle_new = old[start : len(old) - end], new[start : len(new) - end]
    same_end = old[len(old) - end :]
    return [
        *([Section(is_same=True, old=old[:start], new=old[:start])] if start else []),
        *_compared(middle_old, middle_new),
        *([Section(is_same=True, old=same_end, new=same_end)] if end else []),
    ]


def _shared(pairs: Iterable[tuple[str, str]]) -> int:
    count = 0
    for one, other in pairs:
        if one != other:
            break
        count += 1
    return count


def _compared(old: Sequence[str], new: Sequence[str]) -> list[Section]:
    if not old and not new:
        return []
    if len(old) * len(new) > _COMPARED:
        return [Section(is_same=False, old=old, new=new)]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=True)
    return [
        Section(is_same=tag == "equal", old=old[a:b], new=new[c:d])
        for tag, a, b, c, d in matcher.get_opcodes()
    ]


def _html(section: Section, at: int, count: int, is_unified: bool) -> str:
    if section.is_same:
        return _unchanged(section.old, is_first=at == 0, is_last=at == count - 1, is_unified=is_unified)
    if not is_unified:
        return _folded(list(zip_longest(section.old, section.new)), _pairs_html)
    removed = _folded(section.old, lambda lines: _lines_html(_REMOVED, lines))
    return removed + _folded(section.new, lambda lines: _lines_html(_ADDED, lines))


def _unchanged(lines: Sequence[str], *, is_first: bool, is_last: bool, is_unified: bool) -> str:
    """Return the lines next to a change, and the number of the others."""
    before = 0 if is_first else _CONTEXT
    after = 0 if is_last else _CONTEXT
    if len(lines) <= before + after + 1:
        return _same_html(lines, is_unified)
    hidden = len(lines) - before - after
    gap = format_html('<p class="gap">{} unchanged line{}</p>', f"{hidden:,}", "" if hidden == 1 else "s")
    return _same_html(lines[:before], is_unified) + gap + _same_html(lines[len(lines) - after :], is_unified)


def _same_html(lines: Sequence[str], is_unified: bool) -> str:
    if is_unified:
        return _lines_html(_SAME, lines)
    return "".join(_pair_html(_lines_html(_SAME, [line]), _lines_html(_SAME, [line])) for line in lines)


def _folded(rows: Sequence[Row], html: Callable[[Sequence[Row]], str]) -> str:
    """Return the first rows, and the others in a fold."""
    if len(rows) <= _OPEN + 2:
        return html(rows)
    rest = rows[_OPEN:_MOST]
    left = len(rows) - _OPEN - len(rest)
    more = format_html(
        '<details class="diff-rest"><summary>{} more line{}</summary>{}</details>',
        f"{len(rest):,}",
        "" if len(rest) == 1 else "s",
        SafeString(html(rest)),
    )
    end = format_html('<p class="gap">{} more lines are not displayed</p>', f"{left:,}") if left else ""
    return f"{html(rows[:_OPEN])}{more}{end}"


def _pairs_html(pairs: Sequence[Pair]) -> str:
    """Return replaced lines side by side, and the others, which follow, as one block beside nothing."""
    rows = [
        _pair_html(_lines_html(_REMOVED, [old]), _lines_html(_ADDED, [new]))
        for old, new in pairs
        if old is not None and new is not None
    ]
    removed = [old for old, new in pairs if old is not None and new is None]
    added = [new for old, new in pairs if old is None and new is not None]
    rest = _lines_html(_REMOVED, removed) + _lines_html(_ADDED, added)
    return "".join(rows) + (_pair_html(rest) if rest else "")


def _pair_html(*sides: str) -> str:
    return f'<div class="pair">{"".join(sides)}</div>'


def _lines_html(kind: tuple[str, str], lines: Sequence[str]) -> str:
    """Return lines of a kind as one block: an element for each would be most of a long page."""
    name, sign = kind
    block = format_html_join("\n", "<i>{}</i>{}", ((sign, line) for line in lines))
    return f'<div class="line {name}">{block}</div>' if lines else ""
