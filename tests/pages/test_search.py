"""The search page, the palette and the session list find messages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, expect

from accounts.models import Project
from sessions.models import AgentSession
from sessions.pages.search.views import FIRST_HITS
from sessions.selectors.lists.filter_expression import HINTS, MESSAGE_KEYS
from sessions.selectors.search import related
from sessions.services.search.indexing import session_index
from tests.pages.transcripts import make_session, message, turn
from tests.plugins.reused import reused


@reused
def session(project: Project) -> AgentSession:
    texts = ["The connection pool is exhausted.", "<b>Paint</b> the fence.", "The pool grows again."]
    made = make_session(
        project,
        [turn(n, [message("user", text, f"u{n}")]) for n, text in enumerate(texts)],
        title="Nightly run",
    )
    session_index(session_id=made.pk)
    return made


def page_text(client: Client, project: Project, query: str = "") -> str:
    response = client.get(reverse("search", args=[project.slug]) + query)
    assert response.status_code == 200
    return response.content.decode()


def test_hits_are_grouped_by_session_with_marked_snippets(
    member_client: Client, project: Project, session: AgentSession
) -> None:
    text = page_text(member_client, project, "?q=pool")
    assert text.count("Nightly run") == 1
    assert text.count("<mark>pool</mark>") == 2
    assert f"{reverse('session', args=[project.slug, session.pk])}?turn=0&amp;find=pool#message-0" in text


def test_a_search_in_a_session_shows_all_matches_on_request(member_client: Client, project: Project) -> None:
    matching = FIRST_HITS + 5
    turns = [turn(n, [message("user", f"The pool grows to {n}.", f"u{n}")]) for n in range(matching)]
    long = make_session(project, turns)
    session_index(session_id=long.pk)
    query = f"?q=pool&session={long.pk}"
    first = page_text(member_client, project, query)
    assert first.count("<mark>pool</mark>") == FIRST_HITS
    assert "Show more matches" in first
    everything = page_text(member_client, project, f"{query}&all=1")
    assert everything.count("<mark>pool</mark>") == matching
    assert "Show more matches" not in everything


def test_markup_in_messages_is_escaped(
    member_client: Client, project: Project, session: AgentSession
) -> None:
    text = page_text(member_client, project, "?q=paint")
    assert "<b>Paint" not in text
    assert "&lt;b&gt;<mark>Paint</mark>&lt;/b&gt;" in text


def test_markup_is_escaped_in_hits_of_a_past_prompt(member_client: Client, session: AgentSession) -> None:
    address = reverse("session_past_prompt", args=[session.project.slug, session.pk, 1])
    text = member_client.get(f"{address}?q=paint").content.decode()
    assert "&lt;b&gt;<mark>Paint</mark>&lt;/b&gt;" in text
    # The third message came later.
    assert member_client.get(f"{address}?q=pool").content.decode().count("<mark>pool</mark>") == 1


@pytest.mark.slow
def test_days_are_those_of_the_viewer(member_client: Client, project: Project, session: AgentSession) -> None:
    AgentSession.objects.filter(pk=session.pk).update(last_active_at=datetime(2026, 3, 1, 22, 30, tzinfo=UTC))
    found = "?q=pool%20active%3A2026-03-02"
    assert "No messages found" in page_text(member_client, project, found)
    member_client.cookies["zone"] = "Asia/Tokyo"
    assert "Nightly run" in page_text(member_client, project, found)
    palette = member_client.get(reverse("sessions_find", args=[project.slug]) + found)
    assert "message" in {place["kind"] for place in palette.json()["places"]}


def test_facets_narrow_the_results(member_client: Client, project: Project, session: AgentSession) -> None:
    text = page_text(member_client, project, "?q=pool")
    assert "q=pool%20agent%3Areader" in text
    narrowed = page_text(member_client, project, "?q=pool%20agent%3Areader")
    assert narrowed.count("<mark>pool</mark>") == 2
    assert "No messages found" in page_text(member_client, project, "?q=pool%20agent%3Awriter")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "Search all messages"),
        ("?q=nothinglikeit", "No messages found"),
        ("?q=pool%20role:x", "Invalid role"),
        *(
            (f"?q=pool%20{key}:", f"directly after “{key}:”")
            for key in (*sorted(MESSAGE_KEYS), *HINTS, "meta.repo")
        ),
        ("?q=error:%20pool", "<mark>pool</mark>"),
        ("?q=%00", "Search all messages"),
    ],
)
def test_the_page_explains_an_empty_result(
    member_client: Client, project: Project, session: AgentSession, query: str, expected: str
) -> None:
    assert expected in page_text(member_client, project, query)


def test_one_session_can_be_searched(member_client: Client, project: Project, session: AgentSession) -> None:
    make_session(project, [turn(0, [message("user", "another pool", "x")])], name="s-2", title="Other run")
    text = page_text(member_client, project, f"?q=pool&session={session.pk}")
    assert text.count("<mark>pool</mark>") == 2
    assert "Other run" not in text


@pytest.mark.slow
def test_another_project_appears_nowhere(
    member_client: Client, project: Project, other_project: Project, session: AgentSession
) -> None:
    failed = {
        "type": "tool_result",
        "tool_use_id": "x",
        "content": "The pool is exhausted.",
        "is_error": True,
    }
    call = {"type": "tool_use", "id": "x", "name": "TheirTool", "input": {"path": "pool.py"}}
    messages = [message("user", "exhausted pool", "a"), message("assistant", [call], "b")]
    hidden = make_session(
        other_project,
        [turn(0, [*messages, message("user", [failed], "c")])],
        title="Unseen run",
        agent="stranger",
    )
    session_index(session_id=hidden.pk)
    everything = [
        *(page_text(member_client, project, f"?q={q}") for q in ("exhausted pool", "role:user", "error:yes")),
        *(
            member_client.get(reverse(name, args=[project.slug]) + f"?q={q}").content.decode()
            for name in ("sessions", "sessions_find")
            for q in ("exhausted", "exhau", "pool.p", "unseen")
        ),
    ]
    of_session = reverse("search", args=[project.slug]) + f"?q=pool&session={hidden.pk}"
    assert member_client.get(of_session).status_code == 404
    for text in everything:
        assert not [word for word in ("Unseen run", "stranger", "TheirTool", str(hidden.pk)) if word in text]


@pytest.mark.slow
def test_the_list_finds_sessions_by_their_messages(
    member_client: Client, project: Project, session: AgentSession
) -> None:
    address = reverse("sessions", args=[project.slug])
    assert "Nightly run" in member_client.get(f"{address}?q=exhausted").content.decode()
    assert "Nightly run" in member_client.get(f"{address}?q=nightly+fence").content.decode()
    assert "Nightly run" not in member_client.get(f"{address}?q=nightly+unknown").content.decode()
    found = ("exh", "fence+exhau")
    for typed in (*found, "ex", "exhume", "exhau+fence"):
        listed = "Nightly run" in member_client.get(f"{address}?q={typed}").content.decode()
        assert listed == (typed in found), typed


def test_the_palette_finds_messages_and_settings(
    member_client: Client, project: Project, session: AgentSession
) -> None:
    def places(query: str) -> list[dict[str, Any]]:
        found = member_client.get(f"{reverse('sessions_find', args=[project.slug])}?q={query}")
        places: list[dict[str, Any]] = found.json()["places"]
        return places

    found_session, found_message, *_ = places("exhau")
    assert (found_session["kind"], found_message["kind"]) == ("session", "message")
    assert found_message["within"].endswith(f"· {found_session['label']}")  # texts may be equal
    assert ("Redaction", "settings") in [(place["label"], place["kind"]) for place in places("redac")]
    assert places("") == []


@pytest.mark.slow
def test_a_session_links_to_sessions_that_mention_its_files(member_client: Client, project: Project) -> None:
    def reading(name: str, *paths: str) -> AgentSession:
        calls = [
            {"type": "tool_use", "id": f"c{n}", "name": "Read", "input": {"file_path": path}}
            for n, path in enumerate(paths)
        ]
        turns = [turn(0, [message("user", "Go.", "u"), message("assistant", calls, "a")])]
        made = make_session(project, turns, name=name, title=f"Session {name}")
        session_index(session_id=made.pk)
        return made

    shared = ("pool.py", "wire.py", "c.py", "b.py", "a.py")
    # Every repository has these files.
    reading("six", "/other/README.md", "/other/package.json", "/other/.gitignore")
    first = reading(
        "one",
        "/repo/README.md",
        "/repo/package.json",
        "/repo/.gitignore",
        *(f"/repo/src/{n}" for n in shared),
    )
    reading("two", *(f"/elsewhere/{name}" for name in shared))
    reading("three", "/repo/src/wire.py")
    fourth = reading("four", "/repo/src/other.py")
    reading("five", "/elsewhere/other.py")
    text = member_client.get(reverse("session", args=[project.slug, first.pk])).content.decode()
    assert "2 related sessions" in text
    assert text.index("Session two") < text.index("Session three")
    assert "a.py, b.py, c.py, pool.py and 1 more" in text  # the rarest first, then by name
    assert "Session four" not in text
    assert "Session six" not in text
    text = member_client.get(reverse("session", args=[project.slug, fourth.pk])).content.decode()
    assert "1 related session <small>that mentions the same files" in text


@pytest.mark.slow
def test_a_long_session_links_to_sessions_by_its_newest_files(
    member_client: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reading(name: str, *paths: str) -> AgentSession:
        def call(n: int, path: str) -> dict[str, Any]:
            return {"type": "tool_use", "id": f"c{n}", "name": "Read", "input": {"file_path": path}}

        turns = [
            turn(n, [message("user", "Go.", f"u{n}"), message("assistant", [call(n, path)], f"a{n}")])
            for n, path in enumerate(paths)
        ]
        made = make_session(project, turns, name=name, title=f"Session {name}")
        session_index(session_id=made.pk)
        return made

    long = reading("long", *["/repo/old.py"] * 200, *["/repo/new.py"] * 200)
    reading("of old files", "/repo/old.py")
    reading("of new files", "/repo/new.py")
    monkeypatch.setattr(related, "_SEGMENTS", 1)
    text = member_client.get(reverse("session", args=[project.slug, long.pk])).content.decode()
    assert "Session of new files" in text
    assert "Session of old files" not in text


def test_the_title_follows_the_search(at: Any, project: Project, session: AgentSession, page: Page) -> None:
    opened = at(reverse("search", args=[project.slug]))
    expect(opened).to_have_title(f"Search · {project.name} · contextapp")
    opened.get_by_role("searchbox").fill("pool exhausted")
    opened.get_by_role("button", name="Search", exact=True).click()
    expect(opened.get_by_role("link", name="Turn 0")).to_be_visible()
    expect(opened).to_have_title(f"pool exhausted · Search · {project.name} · contextapp")


def test_a_hit_leads_to_the_highlighted_text(
    at: Any, project: Project, session: AgentSession, page: Page
) -> None:
    opened = at(reverse("search", args=[project.slug]) + "?q=pool+exhausted")
    opened.get_by_role("link", name="Turn 0").click()
    expect(opened.locator("#message-0")).to_be_in_viewport()
    found = "() => [...CSS.highlights.get('found')].map(String)"
    opened.wait_for_function("() => CSS.highlights.has('found')")
    assert sorted(opened.evaluate(found)) == ["exhausted", "pool"]
