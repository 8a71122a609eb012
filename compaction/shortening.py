"""Shorten a text for a generated line."""

#: Longer words at the end, such as paths, are cut.
_LONGEST_WORD = 16


def shortened(text: str, size: int) -> str:
    """Return the text if it has at most `size` characters, or else its start with an ellipsis."""
    if len(text) <= size:
        return text
    end = text.rfind(" ", max(size - _LONGEST_WORD, size // 2), size)
    return f"{text[: end if end >= 0 else size - 1].rstrip()}…"
