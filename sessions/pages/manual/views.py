"""The pages of the documentation, and their search."""

from __future__ import annotations

import re
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.html import escape
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from accounts.selectors import projects_of
from sessions.pages.access import page, page_or_fragment, viewer_of
from sessions.pages.manual.library import INDEX, Section, chapters, page_load, page_names, sections_search

_RESULTS = 30
#: Characters of a snippet before and after the first match.
_BEFORE, _AFTER = 60, 160


@require_safe
def manual(request: HttpRequest, name: str = INDEX) -> HttpResponse:
    if name not in page_names():
        raise Http404("Page not found")
    context = {**_frame(request), "page": page_load(name)}
    return page(request, "manual/page.html", context)


@require_safe
def manual_search(request: HttpRequest) -> HttpResponse:
    text = request.GET.get("q", "")[:200].strip()
    results = [(section, snippet(section, text)) for section in sections_search(text, limit=_RESULTS)]
    context = {**_frame(request), "q": text, "results": results}
    return page_or_fragment(request, "manual/search.html", "manual/_results.html", context)


def _frame(request: HttpRequest) -> dict[str, Any]:
    """Return the context of all pages. The navigation shows the user's project if there is only one."""
    projects = list(projects_of(request.user)[:2])
    viewer = viewer_of(request, projects[0].slug) if len(projects) == 1 else None
    return {"viewer": viewer, "chapters": chapters()}


def snippet(section: Section, text: str) -> SafeString:
    """Return the text around the first match, with all matches marked."""
    words = [re.escape(word) for word in text.split()]
    pattern = re.compile("|".join(words), re.IGNORECASE)
    plain = " ".join(section.text.split())
    match = pattern.search(plain)
    start = max(0, match.start() - _BEFORE) if match else 0
    start = plain.find(" ", start) + 1 if start else 0
    shown = plain[start : start + _BEFORE + _AFTER]
    parts, last = ["… " if start else ""], 0
    for match in pattern.finditer(shown):
        parts += [escape(shown[last : match.start()]), f"<mark>{escape(match[0])}</mark>"]
        last = match.end()
    more = " …" if start + len(shown) < len(plain) else ""
    return SafeString("".join([*parts, escape(shown[last:]), more]))
