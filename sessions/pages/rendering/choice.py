"""Choose how a text is rendered, and fold long ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from compaction.messages import ToolCall
from compaction.tools.actions import Kind, action_of
from sessions.pages.rendering.ansi import ansi_html, is_ansi
from sessions.pages.rendering.code import code_html, is_diff, language_of, numbered_html
from sessions.pages.rendering.jsontree import json_html, json_parse
from sessions.pages.rendering.markdown import markdown_html
from sessions.pages.text import Fold, FoldRule, fold, visible

#: Returns a text as an HTML block.
Renderer = Callable[[str], SafeString]

#: Names of the argument that contains the path of a file.
PATHS = ("file_path", "path", "filePath", "absolute_path", "filename", "notebook_path", "file")
#: Names of the argument that contains a shell command.
_COMMANDS = ("command", "cmd", "script")
#: Markdown and colors are rendered up to this length; longer text is displayed as text.
_MAX_LENGTH = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A text for display: how it is folded, and the HTML of its visible beginning.

    `whole` is the HTML of the full text if it is folded and part of the page. `kind` is the CSS class.
    """

    fold: Fold
    kind: str
    start: SafeString
    whole: SafeString | None = None


def prose(text: str, rule: FoldRule, *, is_plain: bool = False) -> Shown:
    """Return a text of the user or the model: Markdown, or a JSON tree."""
    return _shown(text, rule, plain if is_plain else prose_renderer(text), "prose")


def output(text: str, rule: FoldRule, call: ToolCall | None, *, is_plain: bool = False) -> Shown:
    """Return a tool output, rendered according to its content and to the call that caused it."""
    return _shown(text, rule, plain if is_plain else output_renderer(text, call), "code")


def argument(text: str, rule: FoldRule, name: str, values: Mapping[str, Any], *, is_plain: bool) -> Shown:
    """Return an argument of a call. `values` are all arguments of the call."""
    return _shown(text, rule, plain if is_plain else argument_renderer(text, name, values), "code")


def prose_renderer(text: str) -> Renderer:
    if json_parse(text) is not None:
        return _json
    return plain if len(text) > _MAX_LENGTH else _markdown


def output_renderer(text: str, call: ToolCall | None) -> Renderer:
    if is_ansi(text) and len(text) <= _MAX_LENGTH:
        return _ansi
    if json_parse(text) is not None:
        return _json
    if is_diff(text):
        return partial(_code, language="diff")
    action = action_of(call) if call is not None else None
    if action is None or not action.path:
        return plain
    return partial(_file if action.kind is Kind.READ else _numbered, path=action.path)


def argument_renderer(text: str, name: str, values: Mapping[str, Any]) -> Renderer:
    if json_parse(text) is not None:
        return _json
    if is_diff(text):
        return partial(_code, language="diff")
    if name in _COMMANDS:
        return partial(_code, language="bash")
    path = path_of(values)
    return partial(_code, language=language_of(path) if path else None)


def path_of(values: Mapping[str, Any]) -> str | None:
    """Return the path of the file that a call with these arguments is about, or None."""
    found = (values.get(name) for name in PATHS)
    return next((path for path in found if isinstance(path, str) and path), None)


def plain(text: str) -> SafeString:
    """Return the unchanged text, with control characters made visible."""
    return _pre(escape(visible(text)))


def _shown(text: str, rule: FoldRule, renderer: Renderer, kind: str) -> Shown:
    folded = fold(text, rule)
    start = text if not folded.is_folded else folded.start
    # The beginning of a JSON text is not JSON.
    begin = partial(_code, language="json") if folded.is_folded and renderer is _json else renderer
    return Shown(
        fold=folded,
        kind=kind,
        start=begin(start),
        whole=renderer(text) if folded.whole is not None else None,
    )


def _pre(html: SafeString) -> SafeString:
    # Browsers drop a line break that follows the tag.
    return format_html('<pre class="text">\n{}</pre>', html)


def _markdown(text: str) -> SafeString:
    return format_html('<div class="md">{}</div>', markdown_html(text))


def _json(text: str) -> SafeString:
    value = json_parse(text)
    return json_html(value) if value is not None else plain(text)


def _ansi(text: str) -> SafeString:
    return _pre(ansi_html(text))


def _code(text: str, language: str | None) -> SafeString:
    return _pre(code_html(text, language))


def _file(text: str, path: str) -> SafeString:
    language = language_of(path)
    return _pre(numbered_html(text, language) or code_html(text, language))


def _numbered(text: str, path: str) -> SafeString:
    """Return the output of a tool that may show a part of a file: only numbered lines are code."""
    return _pre(numbered_html(text, language_of(path)) or escape(visible(text)))
