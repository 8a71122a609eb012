"""Text of transcripts made fit to show: nothing in it may hide, reorder or break what a person reads."""

from __future__ import annotations

from dataclasses import dataclass

# Control characters become their pictures (␛), characters that reorder text and halves of pairs their code.
_VISIBLE: dict[int, str] = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n\r"}
_VISIBLE |= {0x7F: "␡"}
_VISIBLE |= {
    code: f"⟨U+{code:04X}⟩" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F)
}
_VISIBLE |= dict.fromkeys(range(0xD800, 0xE000), "\ufffd")

#: What a spreadsheet takes for a formula when it begins a cell.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def visible(text: str) -> str:
    return text.replace("\r\n", "\n").translate(_VISIBLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldRule:
    """How much of a text stands open. What is at most half as much again is not worth a fold."""

    lines: int
    characters: int


OUTPUT = FoldRule(lines=12, characters=1_200)
PROSE = FoldRule(lines=60, characters=6_000)

#: A fold up to this size comes with the page; a larger one is fetched when it is opened.
INLINE_CHARACTERS = 3_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """A text with its beginning open. `whole` is all of it where it is folded and comes with the page; where
    it is folded and does not, it is fetched."""

    start: str
    is_folded: bool
    whole: str | None
    lines: int
    characters: int


def fold(text: str, rule: FoldRule) -> Fold:
    lines = text.count("\n") + 1
    is_folded = 2 * lines > 3 * rule.lines or 2 * len(text) > 3 * rule.characters
    start = _beginning(text, rule) if is_folded else text
    carried = is_folded and len(text) <= INLINE_CHARACTERS
    return Fold(
        start=visible(start),
        is_folded=is_folded,
        whole=visible(text) if carried else None,
        lines=lines,
        characters=len(text),
    )


def _beginning(text: str, rule: FoldRule) -> str:
    head = text[: rule.characters]
    return "\n".join(head.split("\n", rule.lines)[: rule.lines])


def spreadsheet_text(text: str) -> str:
    """The text for a cell of a CSV file: none that a spreadsheet would run as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
