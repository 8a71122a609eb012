"""Make transcript text safe to display, so that it cannot hide, reorder or break the rest of the page."""

from __future__ import annotations

from dataclasses import dataclass

# Replace control characters with symbols (␛), bidirectional controls with their code, lone surrogates with �.
_VISIBLE: dict[int, str] = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n\r"}
_VISIBLE |= {0x7F: "␡"}
_VISIBLE |= {
    code: f"⟨U+{code:04X}⟩" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F)
}
_VISIBLE |= dict.fromkeys(range(0xD800, 0xE000), "\ufffd")

#: Prefixes that make a spreadsheet interpret a cell as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def visible(text: str) -> str:
    return text.replace("\r\n", "\n").translate(_VISIBLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldRule:
    """How much of a text is displayed unfolded. Texts up to 1.5 times as long are not folded at all."""

    lines: int
    characters: int


OUTPUT = FoldRule(lines=12, characters=1_200)
PROSE = FoldRule(lines=60, characters=6_000)

#: Folded text up to this size is part of the page; longer text is fetched when the fold is opened.
INLINE_CHARACTERS = 3_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """A text with the beginning that is displayed, neither escaped nor made `visible`.

    `whole` is the full text if it is folded and part of the page.
    """

    start: str
    is_folded: bool
    whole: str | None
    lines: int
    characters: int


def fold(text: str, rule: FoldRule) -> Fold:
    lines = text.count("\n") + 1
    is_folded = 2 * lines > 3 * rule.lines or 2 * len(text) > 3 * rule.characters
    start = _beginning(text, rule) if is_folded else text
    is_inline = is_folded and len(text) <= INLINE_CHARACTERS
    return Fold(
        start=start,
        is_folded=is_folded,
        whole=text if is_inline else None,
        lines=lines,
        characters=len(text),
    )


def _beginning(text: str, rule: FoldRule) -> str:
    head = text[: rule.characters]
    return "\n".join(head.split("\n", rule.lines)[: rule.lines])


def spreadsheet_text(text: str) -> str:
    """Escape text for a CSV cell so that spreadsheets do not run it as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
