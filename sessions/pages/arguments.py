"""Arguments of tool calls for display: one line each, blocks for long values, a diff for file edits."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString

from compaction.jsontext import loads_object
from sessions.pages.rendering.choice import Shown, argument, path_of
from sessions.pages.rendering.code import code_html, language_of
from sessions.pages.rendering.jsontree import json_html
from sessions.pages.text import OUTPUT, visible

#: Argument names of file edits in known agents: the replaced text and its replacement.
_EDIT_PAIRS = (("old_string", "new_string"), ("old_str", "new_str"), ("oldText", "newText"), ("old", "new"))
#: Line limit of diffs: comparing longer texts could take longer than rendering the rest of the page.
_DIFF_LINES = 300
#: Single-line values up to this length are displayed inline.
_SHORT = 160
#: Structures up to this length as JSON are displayed as a tree; longer ones are folded.
_TREE = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """A line of a diff. `kind` is "added", "removed" or "same"; `html` is its highlighted text."""

    kind: str
    text: str
    html: SafeString

    @property
    def sign(self) -> str:
        return {"added": "+", "removed": "−"}.get(self.kind, " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument with one of: a `short` value, a foldable `block`, a JSON `tree`, the `diff` of an edit."""

    name: str
    short: str | None = None
    block: Shown | None = None
    tree: SafeString | None = None
    diff: Sequence[DiffLine] = ()


def arguments_of(text: str, *, is_plain: bool = False) -> list[Argument]:
    """Parse the arguments of a call. Text that is not a JSON object becomes a single argument."""
    values = loads_object(text)
    pair = next((pair for pair in _EDIT_PAIRS if _is_diffable(values, pair)), None)
    shown = [
        _argument(name, value, values, is_plain)
        for name, value in values.items()
        if pair is None or name not in pair
    ]
    if pair is not None:
        path = path_of(values)
        language = language_of(path) if path and not is_plain else None
        shown.append(Argument(name="change", diff=diff_of(values[pair[0]], values[pair[1]], language)))
    return shown


def argument_text(text: str, name: str) -> str | None:
    """Return the full text of an argument, or None if the call has no argument of this name."""
    values = loads_object(text)
    return next((_as_text(value) for key, value in values.items() if visible(key) == name), None)


def _argument(name: str, value: Any, values: Mapping[str, Any], is_plain: bool) -> Argument:
    text = _as_text(value)
    if len(text) <= _SHORT and "\n" not in text:
        return Argument(name=visible(name), short=visible(text))
    if isinstance(value, dict | list) and not is_plain and len(text) <= _TREE:
        return Argument(name=visible(name), tree=json_html(value))
    return Argument(name=visible(name), block=argument(text, OUTPUT, name, values, is_plain=is_plain))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _is_diffable(values: Mapping[str, Any], pair: tuple[str, str]) -> bool:
    return all(isinstance(text := values.get(name), str) and text.count("\n") < _DIFF_LINES for name in pair)


def diff_of(old: str, new: str, language: str | None) -> list[DiffLine]:
    """Return the changed lines of a text with three unchanged lines around them."""
    kinds = {"+": "added", "-": "removed", " ": "same"}
    compared = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="")
    lines = [line for line in list(compared)[2:] if not line.startswith("@@")]
    texts = [visible(line[1:]).replace("\n", " ") for line in lines]
    # Highlighted together, so that a string or comment may span lines.
    html = code_html("\n".join(texts), language).split("\n") if language else []
    if len(html) != len(texts):
        html = [escape(text) for text in texts]
    return [
        DiffLine(kind=kinds[line[0]], text=text, html=SafeString(shown))
        for line, text, shown in zip(lines, texts, html, strict=True)
    ]
