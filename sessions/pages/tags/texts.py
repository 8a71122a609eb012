"""Template filters for texts of transcripts."""

from __future__ import annotations

import re

from django import template
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.filter
def marked(text: str, asked: str) -> SafeString:
    """The text with the words that were asked for marked, in whatever case they stand."""
    words = "|".join(re.escape(word) for word in asked.split())
    if not words:
        return escape(text)
    pieces = re.split(f"({words})", text, flags=re.IGNORECASE)
    shown = [
        format_html("<mark>{}</mark>", piece) if at % 2 else escape(piece) for at, piece in enumerate(pieces)
    ]
    return SafeString("".join(shown))
