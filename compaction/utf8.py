"""Text as bytes, for RE2 and for fast scans."""


def utf8(text: str) -> bytes:
    """Return the text as UTF-8, with `?` for each lone surrogate, which UTF-8 and RE2 reject."""
    return text.encode("utf-8", "replace")
