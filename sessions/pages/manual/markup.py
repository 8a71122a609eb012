"""Convert the Markdown of the documentation to HTML, with anchors and links between pages."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from posixpath import dirname, normpath
from typing import Any

from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from sessions.pages.rendering.code import code_html

#: A picture of the documentation in its HTML, as GitHub finds it: relative to the page.
_PICTURE = re.compile(r'(?<= )(src|srcset)="([^":]*\bimages/[^":]+)"')

_EXTERNAL = ("http://", "https://", "mailto:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    level: int
    text: str
    anchor: str


def page_parse(text: str) -> list[Token]:
    return _parser().parse(text)


def page_html(
    tokens: Sequence[Token], *, name: str, known: Collection[str], is_glossary: bool
) -> tuple[SafeString, list[Heading]]:
    """Return the HTML of a page and its headings. `known` are the names of all pages.

    In the glossary, each row of the table has the anchor of its term.
    """
    renderer = _Renderer(name=name, known=known, is_glossary=is_glossary)
    html = renderer.render(tokens, _parser().options, {})
    return SafeString(html), [heading for heading, _ in plain_text(tokens) if heading.text]


def plain_text(tokens: Sequence[Token]) -> list[tuple[Heading, str]]:
    """Return the sections of a page: heading and plain text. The first one may have no heading."""
    sections: list[tuple[Heading, list[str]]] = []
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            text = _text(tokens[index + 1])
            sections.append((Heading(level=int(token.tag[1:]), text=text, anchor=anchor_of(text)), []))
        elif token.type in {"inline", "fence"} and tokens[index - 1].type != "heading_open":
            if not sections:
                sections.append((Heading(level=0, text="", anchor=""), []))
            sections[-1][1].append(_text(token))
    return [(heading, "\n".join(texts)) for heading, texts in sections]


def anchor_of(heading: str) -> str:
    """Return the anchor of a heading, as GitHub forms it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _text(token: Token) -> str:
    if token.children is None:
        return token.content
    parts = (" " if child.type == "softbreak" else child.content for child in token.children)
    return "".join(part for part in parts if not part.startswith("<"))


class _Renderer(RendererHTML):
    def __init__(self, *, name: str, known: Collection[str], is_glossary: bool) -> None:
        super().__init__()
        self._name, self._known, self._is_glossary = name, known, is_glossary
        self._is_linked: list[bool] = []

    def heading_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return f'<{tokens[idx].tag} id="{anchor_of(_text(tokens[idx + 1]))}">'

    def heading_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        token, text = tokens[idx], _text(tokens[idx - 1])
        if token.tag == "h1":
            return "</h1>\n"
        label = escape(f"Link to {text}")
        return f' <a class="anchor" href="#{anchor_of(text)}" aria-label="{label}">#</a></{token.tag}>\n'

    def td_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        if not self._is_glossary or tokens[idx - 1].type != "tr_open":
            return "<td>"
        first, *others = _text(tokens[idx + 1]).split(", ")
        spans = "".join(f'<span id="{anchor_of(term)}"></span>' for term in others)
        return f'<td id="{anchor_of(first)}">{spans}'

    def link_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        address = self._address(str(tokens[idx].attrs.get("href", "")))
        self._is_linked.append(bool(address))
        if not address:
            return "<span>"  # a file that the product does not include
        outside = ' rel="noopener noreferrer" target="_blank"' if address.startswith(_EXTERNAL) else ""
        return f'<a href="{escape(address)}"{outside}>'

    def link_close(self, *_: Any) -> str:
        return "</a>" if self._is_linked.pop() else "</span>"

    def image(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return escape(tokens[idx].content)

    def html_block(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return _PICTURE.sub(
            lambda found: f'{found[1]}="{self._picture_address(found[2])}"', tokens[idx].content
        )

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        token = tokens[idx]
        language = token.info.split()[0] if token.info.strip() else None
        code = code_html(token.content.rstrip(), language)
        copy = '<button type="button" data-copy hidden>Copy<span class="unseen"> the code</span></button>'
        return f'<div class="copyable"><pre tabindex="0">{code}</pre>{copy}</div>\n'

    def table_open(self, *_: Any) -> str:
        return '<div class="table-scroll" tabindex="0" role="group" aria-label="Table"><table>'

    def table_close(self, *_: Any) -> str:
        return "</table></div>\n"

    def _address(self, target: str) -> str:
        """Return the URL of a link; "" if its target is not a page of the documentation."""
        if target.startswith((*_EXTERNAL, "#")):
            return target
        file, _, anchor = target.partition("#")
        name = self._path(file).removesuffix(".md")
        if name not in self._known:
            return ""
        return page_address(name) + (f"#{anchor}" if anchor else "")

    def _picture_address(self, target: str) -> str:
        return static(f"docs/{self._path(target).removeprefix('images/')}")

    def _path(self, target: str) -> str:
        """Return the path of a file that the page refers to, relative to the folder of the documentation."""
        return normpath(f"{dirname(self._name)}/{target}".lstrip("/"))


def page_address(name: str) -> str:
    return reverse("manual") if name == "README" else reverse("manual_page", args=[name])


@cache
def _parser() -> MarkdownIt:
    # The documentation is part of the product, so its HTML, such as <kbd>, is trusted.
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
