"""Template tags that link to the documentation."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sessions.pages.manual.library import GLOSSARY, glossary
from sessions.pages.manual.markup import anchor_of
from sessions.pages.manual.markup import page_address as address_of

register = template.Library()


@register.simple_tag
def page_address(name: str) -> str:
    """Return the URL of a page of the documentation."""
    return address_of(name)


@register.simple_tag
def term(name: str, label: str = "") -> SafeString:
    """Return a link to a term in the glossary, with its definition as tooltip. Only the label if unknown."""
    meaning = glossary().get(name)
    if meaning is None:
        return format_html("{}", label or name)
    return format_html(
        '<a class="term" href="{}#{}" title="{}">{}</a>',
        address_of(GLOSSARY),
        anchor_of(name),
        f"{meaning[0].upper()}{meaning[1:]}.",
        label or name,
    )
