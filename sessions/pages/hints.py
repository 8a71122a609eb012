"""The hints of the tour, shown as one line at the top of some pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from sessions.pages.access import redirect_back, user_of, wants_fragment
from sessions.selectors.hints import hints_dismissed
from sessions.services.sessions.hints import hints_dismiss, hints_restore


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A hint. `page` is the URL name of its page, `learn` a documentation page with an anchor."""

    name: str
    page: str
    text: str
    learn: str

    @property
    def number(self) -> int:
        return HINTS.index(self) + 1


HINTS: Sequence[Hint] = (
    Hint(
        name="list",
        page="sessions",
        text="Each sparkline shows the prompt size over a session's turns; drops are compactions. The health "
        "grade shows which sessions wasted tokens or lost content that the model needed later.",
        learn="guides/investigate-a-session#the-list",
    ),
    Hint(
        name="chart",
        page="session",
        text="The chart compares the prompt that was served with the full transcript: the gap is what "
        "compaction kept out. Select a turn in the chart to see what the model saw there.",
        learn="guides/investigate-a-session#a-session",
    ),
    Hint(
        name="turn",
        page="session_past_prompt",
        text="This is the exact prompt of this turn. For each missing part, it shows the edit that removed "
        "it, and links to the original.",
        learn="concepts/overview",
    ),
    Hint(
        name="compactions",
        page="session_compactions",
        text="A compaction is a list of recorded edits. Open one to compare the prompt before and after. "
        "Nothing is lost: every compaction can be reverted.",
        learn="concepts/compaction",
    ),
    Hint(
        name="trends",
        page="trends",
        text="Savings are net: the price of the tokens that compaction removed from prompts, minus cache "
        "re-writes and summaries. References to removed content show the effect on quality.",
        learn="guides/track-costs",
    ),
)


def hint_of(request: HttpRequest) -> Hint | None:
    """Return the hint of the current page, unless the user has dismissed it. At most one query."""
    name = request.resolver_match.url_name if request.resolver_match else ""
    hint = next((hint for hint in HINTS if hint.page == name), None)
    if hint is None or not request.user.is_authenticated:
        return None
    return None if hint.name in hints_dismissed(user_of(request)) else hint


@require_POST
def hints_change(request: HttpRequest) -> HttpResponse:
    """Dismiss a hint or all of them, or show all again."""
    user, chosen = user_of(request), request.POST.get("hint", "")
    if chosen == "restore":
        hints_restore(user=user)
    else:
        names = [hint.name for hint in HINTS if chosen in {"all", hint.name}]
        hints_dismiss(user=user, hints=names)
    if wants_fragment(request):
        return HttpResponse()
    return redirect_back(request, reverse("home"))


urlpatterns = [path("hints/", hints_change, name="hints")]
