"""Arguments of tool calls for display: one line each, blocks for long values, a diff for file edits."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.jsontext import loads_object
from sessions.pages.text import OUTPUT, Fold, fold, visible

#: Argument names of file edits in known agents: the replaced text and its replacement.
_EDIT_PAIRS = (("old_string", "new_string"), ("old_str", "new_str"), ("oldText", "newText"))
#: Line limit of diffs: comparing longer texts could take longer than rendering the rest of the page.
_DIFF_LINES = 300
#: Single-line values up to this length are displayed inline.
_SHORT = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """A line of a diff. `kind` is "added", "removed" or "same"."""

    kind: str
    text: str

    @property
    def sign(self) -> str:
        return {"added": "+", "removed": "−"}.get(self.kind, " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument with one of: a `short` inline value, a foldable `block`, the `diff` of an edit."""

    name: str
    short: str | None = None
    block: Fold | None = None
    diff: Sequence[DiffLine] = ()


def arguments_of(text: str) -> list[Argument]:
    """Parse the arguments of a call. Text that is not a JSON object becomes a single argument."""
    values = loads_object(text)
    pair = next((pair for pair in _EDIT_PAIRS if _is_diffable(values, pair)), None)
    shown = [_argument(name, value) for name, value in values.items() if pair is None or name not in pair]
    if pair is not None:
        shown.append(Argument(name="change", diff=_diff(values[pair[0]], values[pair[1]])))
    return shown


def argument_text(text: str, name: str) -> str | None:
    """Return the full text of an argument, or None if the call has no argument of this name."""
    values = loads_object(text)
    return next((_as_text(value) for key, value in values.items() if visible(key) == name), None)


def _argument(name: str, value: Any) -> Argument:
    text = _as_text(value)
    if len(text) <= _SHORT and "\n" not in text:
        return Argument(name=visible(name), short=visible(text))
    return Argument(name=visible(name), block=fold(text, OUTPUT))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _is_diffable(values: Mapping[str, Any], pair: tuple[str, str]) -> bool:
    return all(isinstance(text := values.get(name), str) and text.count("\n") < _DIFF_LINES for name in pair)


def _diff(old: str, new: str) -> list[DiffLine]:
    kinds = {"+": "added", "-": "removed", " ": "same"}
    compared = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=3)
    shown = [line for line in list(compared)[2:] if not line.startswith("@@")]
    return [DiffLine(kind=kinds[line[0]], text=visible(line[1:])) for line in shown]
