"""Shorten a text for a generated line."""


def shortened(text: str, size: int) -> str:
    """Return the text if it has at most `size` characters, or else its start with an ellipsis."""
    return text if len(text) <= size else text[: size - 1] + "…"
