"""Template filters for transcript text."""

from __future__ import annotations

from collections.abc import Sequence

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from sessions.pages.arguments import DiffLine

register = template.Library()


@register.filter
def verbatim(text: str) -> str:
    """Prefix a line break: browsers drop the first one of a `<textarea>`, so the text keeps its own."""
    return f"\n{text}"


@register.filter
def sentence(text: str) -> str:
    """Return a phrase, such as the reason of a compaction, as a sentence."""
    end = "" if text.endswith((".", "!", "?", "…")) else "."
    return f"{text[:1].upper()}{text[1:]}{end}"


@register.filter
def removal_label(kind: str) -> str:
    """Return the label of what happened to a message: pages call an eviction a removal."""
    return "removed" if kind == "evicted" else kind


@register.filter
def diff_lines(lines: Sequence[DiffLine]) -> SafeString:
    """Render the lines of a diff for a `<pre>`, where a template could not be indented."""
    return format_html_join(
        "",
        '<span class="{}"><i>{}</i>{}\n</span>',
        ((line.kind, line.sign, line.html) for line in lines),
    )


@register.simple_tag
def positions(first: int, last: int) -> str:
    """Name the messages from `first` to `last`: `message 4`, `messages 4–9`."""
    return f"message {first}" if first == last else f"messages {first}–{last}"
