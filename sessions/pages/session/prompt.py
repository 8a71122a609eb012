"""The prompt as it stands: what the next call would read."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from sessions.pages.access import page_or_fragment, session_of, viewer_of
from sessions.pages.session.seen import outline_or_404, seen_context
from sessions.pages.tabs import session_context

#: The components of a prompt, in the order in which they stand in it, as people call them.
COMPONENTS = (
    ("system", "system text"),
    ("tools", "tool definitions"),
    ("memory", "working memory"),
    ("recap", "recap"),
    ("user", "user"),
    ("assistant", "assistant"),
    ("tool_outputs", "tool outputs"),
)


@require_safe
def session_prompt(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    outline = outline_or_404(session, session.turn_count)
    context = seen_context(request, viewer, session, outline)
    context |= session_context(viewer, session, "session_prompt")
    sizes = session.shown_components or session.context_components
    context["components"] = [(key, name, sizes[key]) for key, name in COMPONENTS if sizes.get(key)]
    context["components_total"] = sum(sizes.values())
    return page_or_fragment(request, "sessions/prompt.html", "sessions/seen/_seen.html", context)
