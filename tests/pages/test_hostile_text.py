"""Texts that agents and users choose, in a real browser: pages show them, but no more."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page

from accounts.models import Project
from compaction.memory.origins import Author
from sessions.models import SavedView
from sessions.services.compactions.apply import session_compact
from sessions.services.memory.revisions import Writer, memory_patch
from sessions.services.search.indexing import search_index_run
from tests.browsing import DESKTOP, PHONE, fits_in_width
from tests.pages.served import address
from tests.pages.transcripts import make_session, message, reading_turn, turn

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

TAGS = (
    "\"'></title></textarea></script></pre><img src=x onerror=alert(1)><script>alert(2)</script>"
    '<b hx-get="/x/" hx-trigger="load" data-hx-post="/logout/">'
)
MARKDOWN = f"""{TAGS}
[a](javascript:alert(3)) ![b](https://evil.example/b.png) ![c](data:image/svg+xml,<svg/onload=alert(4)>)

| left | right |
|:--|--:|
| <svg onload=alert(5)> | 1 |

```html" onload=alert(6)
<script>alert(7)</script>
```
"""
#: One character, which no browser can break.
MARKED = "Z" + "\u0337\u0308\u0323" * 400
OUTPUT = f"{MARKDOWN}\n{MARKED}\n\u202etxt.exe\n" + "a line of a file\n" * 300

#: Elements and attributes that no page has, other than by a text that became part of its HTML.
FOREIGN = """() => [...document.querySelectorAll("*")].filter(element =>
    ["IFRAME", "OBJECT", "EMBED", "BASE"].includes(element.tagName)
    || element.tagName === "SCRIPT" && !element.src && element.type !== "application/json"
    || [...element.attributes].some(({ name, value }) =>
        /^on/i.test(name) || /^(data-)?hx-(get|post)$/.test(name) && /^.(x|logout)/.test(value)
        || /^(href|src|action)$/.test(name) && /^\\s*(javascript|data:(?!image\\/png))/i.test(value))
).map(element => element.outerHTML)"""


def test_texts_stay_text_and_within_the_page(
    at: Any, page: Page, project: Project, member: User, served_url: str, subtests: Any
) -> None:
    project.name = TAGS[:200]
    project.save()
    readings = [reading_turn(number, f"{number} {OUTPUT}") for number in range(12)]
    answer = {"type": "tool_result", "tool_use_id": "call-11", "content": OUTPUT}
    end = turn(12, [message("user", [answer, {"type": "text", "text": MARKDOWN}], "end")])
    names: dict[str, Any] = {"name": TAGS[-60:], "title": TAGS, "agent": TAGS[:100], "model": TAGS[:100]}
    session = make_session(project, [*readings, end], tags=[TAGS[:100]], **names)
    session.budget_tokens, session.policy = 20_000, {"soft": 0, "hard": 0, "tail_share": 0.05}
    session.save()
    session_compact(session=session, trigger="user", reason=TAGS)
    changes = {"task": TAGS, "decisions": [MARKDOWN]}
    memory_patch(session=session, changes=changes, writer=Writer(author=Author.PERSON))
    SavedView.objects.create(project=project, user=member, name=TAGS[:80], query="tag=x")
    search_index_run()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    edit = session.edits.exclude(position=None).first()
    in_project = ("sessions", "tools", "trends", "memory", "settings", "connect", "settings_audit")
    of_session = ("session", "session_prompt", "session_raw", "session_compactions", "session_memory")
    for url in (
        *(reverse(name, args=[project.slug]) for name in in_project),
        f"{reverse('search', args=[project.slug])}?q=alert",
        *(address(name, session) for name in of_session),
        address("session_turn", session, 12),
        address("session_past_prompt", session, 3),
        address("session_compaction", session, 1),
        address("session_compaction_edit", session, 1, edit.ordinal),
    ):
        for size in (DESKTOP, PHONE):
            with subtests.test(url, width=size["width"]):
                page.set_viewport_size(size)
                at(url)
                assert page.locator("main h1").count() == 1
                assert page.evaluate(FOREIGN) == []
                assert fits_in_width(page)
    assert [url for url in requested if not url.startswith((served_url, "data:image/png"))] == []
