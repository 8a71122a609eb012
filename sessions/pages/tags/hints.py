"""Template tag that renders the hint of the current page."""

from __future__ import annotations

from typing import Any

from django import template
from django.template.context import RequestContext

from sessions.pages.hints import HINTS, hint_of

register = template.Library()


@register.inclusion_tag("_hint.html", takes_context=True)
def page_hint(context: RequestContext) -> dict[str, Any]:
    """Render the hint of the current page, if it has content and the user has not dismissed the hint."""
    request = context.get("request")
    hint = hint_of(request) if request is not None and not context.get("is_empty") else None
    page, _, anchor = hint.learn.partition("#") if hint is not None else ("", "", "")
    return {"hint": hint, "total": len(HINTS), "page": page, "anchor": anchor}
