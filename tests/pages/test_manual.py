"""The documentation inside the product: pages, links, search, and the terms of the glossary."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.urls import reverse

from sessions.pages.manual.library import GLOSSARY, chapters, glossary, page_load, page_names

pytestmark = pytest.mark.django_db

TEMPLATES = Path(settings.BASE_DIR) / "templates"


@pytest.mark.slow
def test_every_link_leads_to_a_page_and_an_anchor(client, member):
    client.force_login(member)
    pages = {reverse("manual"): client.get(reverse("manual")).text}
    for name in page_names() - {"README"}:
        address = reverse("manual_page", args=[name])
        pages[address] = client.get(address).text
    assert len(pages) == len(page_names()) >= 20
    for address, html in pages.items():
        for target in map(unescape, re.findall(r'href="((?:/docs/|#)[^"]*)"', html)):
            path, _, anchor = target.partition("#")
            found = pages[path or address] if path != reverse("manual_search") else ""
            assert not anchor or f'id="{anchor}"' in found, (address, target)


def test_pictures_are_served_and_found_by_github(client, member):
    client.force_login(member)
    page = client.get(reverse("manual_page", args=["guides/investigate-a-session"])).text
    pictures = re.findall(r'(?:src|srcset)="(/static/docs/[^"]+)"', page)
    assert [Path(picture).name for picture in pictures] == ["compaction-dark.png", "compaction-light.png"]
    assert all(finders.find(picture.removeprefix("/static/")) for picture in pictures)
    for file in (Path(settings.BASE_DIR) / "README.md", *(Path(settings.BASE_DIR) / "docs").rglob("*.md")):
        for target in re.findall(r'(?:src|srcset)="([^":]+)"', file.read_text()):
            assert (file.parent / target).is_file(), (file, target)


def test_the_contents_list_every_page_but_the_index():
    listed = [name for chapter in chapters() for name, _ in chapter.pages]
    assert sorted(listed) == sorted(page_names() - {"README"})


def test_code_is_highlighted_and_files_outside_the_docs_are_not_linked(client, member):
    client.force_login(member)
    page = client.get(reverse("manual")).text
    assert "<span>Contributing</span>" in page
    assert (
        '<pre tabindex="0"><span class="hl-'
        in client.get(reverse("manual_page", args=["guides/connect-an-agent"])).text
    )
    assert client.get(reverse("manual_page", args=["../README"])).status_code == 404
    assert client.get(reverse("manual_page", args=["nothing"])).status_code == 404


@pytest.mark.slow
def test_search_marks_the_words_and_prefers_headings(client, member):
    client.force_login(member)
    found = client.get(reverse("manual_search"), {"q": "working memory"}).text
    assert found.index("concepts/working-memory/") < found.index("<mark>")
    assert "<mark>" in found
    assert "No pages contain" in client.get(reverse("manual_search"), {"q": "zebra <b>"}).text
    assert client.get(reverse("manual_search")).status_code == 200


@pytest.mark.slow
def test_the_palette_finds_documentation(member_client, project):
    found = member_client.get(reverse("sessions_find", args=[project.slug]), {"q": "working memory"}).json()
    assert any(place["kind"] == "docs" for place in found["places"])


def test_every_term_in_a_template_is_in_the_glossary():
    used = {
        name
        for file in TEMPLATES.rglob("*.html")
        for name in re.findall(r'{% term "([^"]+)"', file.read_text())
    }
    assert used
    assert used <= set(glossary())
    assert glossary()["occupancy"] == "prompt tokens divided by the budget"
    assert 'id="occupancy"' in page_load(GLOSSARY).html
