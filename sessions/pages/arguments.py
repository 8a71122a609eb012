"""The arguments of a tool call, readable: a line each, blocks for long ones, a diff for a file edit."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.jsontext import loads_object
from sessions.pages.text import OUTPUT, Fold, fold, visible

#: The names under which the known agents put the text that an edit replaces, and what replaces it.
_EDIT_PAIRS = (("old_string", "new_string"), ("old_str", "new_str"), ("oldText", "newText"))
#: Comparing longer texts line by line could take longer than the rest of the page.
_DIFF_LINES = 300
#: A value up to this length without a line break stands beside its name.
_SHORT = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a diff: `kind` is "added", "removed" or "same"."""

    kind: str
    text: str

    @property
    def sign(self) -> str:
        return {"added": "+", "removed": "−"}.get(self.kind, " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument: `short` beside its name, or a `block` under it, or the `diff` of an edit."""

    name: str
    short: str | None = None
    block: Fold | None = None
    diff: Sequence[DiffLine] = ()


def arguments_of(text: str) -> list[Argument]:
    """The arguments of a call's JSON text. What is no JSON object stands under one name, unchanged."""
    values = loads_object(text)
    pair = next((pair for pair in _EDIT_PAIRS if _is_diffable(values, pair)), None)
    shown = [_argument(name, value) for name, value in values.items() if pair is None or name not in pair]
    if pair is not None:
        shown.append(Argument(name="change", diff=_diff(values[pair[0]], values[pair[1]])))
    return shown


def argument_text(text: str, name: str) -> str | None:
    """The whole of one argument, as `arguments_of` shows it, or None where the call has no such one."""
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
