"""The pages of the documentation: their HTML, sections and the glossary.

The files ship with the code, so a process reads each of them once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.utils.safestring import SafeString

from sessions.pages.manual.markup import Heading, page_html, page_parse, plain_text

#: The page that lists all others, and the glossary.
INDEX, GLOSSARY = "README", "concepts/glossary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page under one heading, as plain text. `anchor` is "" before the first heading."""

    page: str
    title: str
    heading: str
    anchor: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page. `name` is its path without suffix, relative to the folder of the documentation."""

    name: str
    title: str
    html: SafeString
    headings: Sequence[Heading]
    sections: Sequence[Section]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A group of the table of contents: page names and titles."""

    title: str
    pages: Sequence[tuple[str, str]]


def page_names() -> Set[str]:
    """Return the names of all pages in alphabetical order."""
    return _files().keys()


@cache
def _files() -> Mapping[str, Path]:
    root = Path(settings.BASE_DIR) / "docs"
    files = {str(file.relative_to(root).with_suffix("")): file for file in root.rglob("*.md")}
    return dict(sorted(files.items()))


@cache
def page_load(name: str) -> Page:
    """Return a page. Raises KeyError if it does not exist."""
    tokens = page_parse(_files()[name].read_text())
    html, headings = page_html(tokens, name=name, known=page_names(), is_glossary=name == GLOSSARY)
    title = headings[0].text if headings else name
    return Page(
        name=name,
        title=title,
        html=html,
        headings=[each for each in headings if each.level == 2],
        sections=[
            Section(page=name, title=title, heading=heading.text, anchor=heading.anchor, text=text)
            for heading, text in plain_text(tokens)
        ],
    )


_CHAPTER = re.compile(r"^\*\*(.+)\*\*$")
_ENTRY = re.compile(r"^- \[(.+?)\]\((.+?)\.md\)")


@cache
def chapters() -> Sequence[Chapter]:
    """Return the table of contents, from the lists of the index page."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for line in _files()[INDEX].read_text().splitlines():
        if match := _CHAPTER.match(line):
            found.append((match[1], []))
        elif found and (match := _ENTRY.match(line)) and match[2] in page_names():
            found[-1][1].append((match[2], match[1]))
    return [Chapter(title=title, pages=pages) for title, pages in found if pages]


_TERM = re.compile(r"^\| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


@cache
def glossary() -> Mapping[str, str]:
    """Return the glossary: terms and their meanings. Empty if the documentation is not installed."""
    file = _files().get(GLOSSARY)
    rows = _TERM.findall(file.read_text()) if file is not None else []
    return {
        term.strip(): meaning.strip().replace("`", "")
        for names, meaning in rows[2:]
        for term in names.split(", ")
    }


def headings_search(text: str, *, limit: int) -> list[Section]:
    """Return the sections whose heading contains a word starting with each of `words`."""
    words = [re.compile(rf"\b{re.escape(word)}", re.IGNORECASE) for word in text.split()]
    found = [
        section
        for name in page_names()
        for section in page_load(name).sections
        if words and all(word.search(f"{section.title} {section.heading}") for word in words)
    ]
    return found[:limit]


def sections_search(text: str, *, limit: int) -> list[Section]:
    """Return the sections that contain all words; sections with a matching heading come first."""
    words = text.lower().split()
    if not words:
        return []
    ranked = sorted(_matches(words), key=lambda found: -found[0])
    return [section for _, section in ranked[:limit]]


def _matches(words: Sequence[str]) -> Iterator[tuple[int, Section]]:
    for name in page_names():
        for section in page_load(name).sections:
            heading, title = section.heading.lower(), section.title.lower()
            body = f"{title}\n{heading}\n{section.text.lower()}"
            if all(word in body for word in words):
                occurrences = min(sum(body.count(word) for word in words), 20)
                in_title = sum((20 if word in heading else 0) + (8 if word in title else 0) for word in words)
                yield in_title + occurrences, section
