"""The next prompt, which the next call will send."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from compaction.sizes.breakdown import PROMPT_ORDER
from sessions.models import AgentSession
from sessions.pages.access import Viewer, page_or_fragment, with_session
from sessions.pages.session.past_prompt import outline_or_404, past_prompt_context
from sessions.pages.tabs import session_context
from sessions.selectors.prompts.stored import unfit_reason
from sessions.selectors.token_budgets import session_calibration

_LABELS = {
    "system": "system prompt",
    "tools": "tool definitions",
    "memory": "working memory",
    "tool_outputs": "tool outputs",
}

#: The components of a prompt with their labels, in the order in which they appear in it.
COMPONENTS = tuple((name, _LABELS.get(name, name)) for name in PROMPT_ORDER)


@require_safe
@with_session
def session_prompt(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    outline = outline_or_404(session, session.turn_count)
    context = past_prompt_context(request, viewer, session, outline)
    context |= session_context(viewer, session, "session_prompt")
    sizes = session.shown_components or session.context_components
    context["components"] = [(key, name, sizes[key]) for key, name in COMPONENTS if sizes.get(key)]
    context["components_total"] = sum(sizes.values())
    calibration = session_calibration(session)
    tokens, limit = calibration.provider(outline.tokens), context["limit"]
    context |= {"calibration": calibration, "provider_tokens": tokens}
    if limit is not None and limit.name == "budget" and tokens > limit.tokens:
        context["unfit_reason"] = unfit_reason(
            session_id=session.pk, turn=session.turn_count - 1, tokens=tokens, budget=limit.tokens
        )
    return page_or_fragment(request, "sessions/prompt.html", "sessions/past_prompt/_prompt.html", context)
