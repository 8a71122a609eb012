"""Markdown as HTML. HTML in the text stays text, and images are not loaded from other servers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from sessions.pages.rendering.code import code_html
from sessions.pages.text import visible

_SCHEMES = ("http://", "https://", "mailto:")


def markdown_html(text: str) -> SafeString:
    """Return the text as HTML: CommonMark with tables, strikethrough and line breaks as in chats."""
    return SafeString(_parser().render(visible(text)))


class _Renderer(RendererHTML):
    def heading_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return f"<{_heading(tokens[idx])}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return f"</{_heading(tokens[idx])}>\n"

    def bullet_list_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Place the markers of a list where its text begins: on the right in Arabic and Hebrew."""
        tokens[idx].attrSet("dir", "auto")
        return self.renderToken(tokens, idx, options, env)

    ordered_list_open = bullet_list_open

    def image(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        token = tokens[idx]
        return _link(str(token.attrs.get("src", "")), escape(token.content or "image"))

    def link_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        address = str(tokens[idx].attrs.get("href", ""))
        return _opening(address) if address.startswith(_SCHEMES) else "<span>"

    def link_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        opening = next(t for t in reversed(tokens[:idx]) if t.type == "link_open")
        return "</a>" if str(opening.attrs.get("href", "")).startswith(_SCHEMES) else "</span>"

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        token = tokens[idx]
        language = token.info.split()[0] if token.info.strip() else None
        return f'<pre class="code-block" tabindex="0">{code_html(token.content, language)}</pre>\n'

    def code_block(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return f'<pre class="code-block" tabindex="0">{escape(tokens[idx].content)}</pre>\n'

    def table_open(self, *_: Any) -> str:
        return '<div class="table-scroll" tabindex="0"><table>'

    def table_close(self, *_: Any) -> str:
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Align a cell by its class: the Content Security Policy of pages blocks inline styles."""
        if alignment := tokens[idx].attrs.pop("style", None):
            tokens[idx].attrSet("class", str(alignment).replace("text-align:", "align-"))
        return self.renderToken(tokens, idx, options, env)

    td_open = th_open


def _heading(token: Token) -> str:
    """Return the tag of a heading. Turns are `h3`, so the headings of their messages begin at `h4`."""
    return f"h{min(int(token.tag[1:]) + 3, 6)}"


def _link(address: str, label: str) -> str:
    return f"{_opening(address)}{label}</a>" if address.startswith(_SCHEMES) else label


def _opening(address: str) -> str:
    return f'<a href="{escape(address)}" rel="noopener noreferrer nofollow" target="_blank">'


@cache
def _parser() -> MarkdownIt:
    options = {"html": False, "linkify": False, "typographer": False, "breaks": True}
    parser = MarkdownIt("commonmark", options, renderer_cls=_Renderer)
    return parser.enable(["table", "strikethrough"])
