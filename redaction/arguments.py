"""Detect passwords in lists of arguments: `["sshpass", "-p", "…"]` in JSON and code, and in YAML."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from redaction.commands import COMMANDS, FINDERS
from redaction.spans import Rule, Span, compiled

_PROGRAM = rf"(?:{'|'.join(command.programs for command in COMMANDS)})(?:\.exe)?"
_IS_PROGRAM = re.compile(rf"(?:\S{{0,200}}[/\\])?{_PROGRAM}")

#: Between two arguments: quotes and a comma, or a new item of a YAML list.
_SEPARATOR = (
    r"(?:\\*[\"'](?:\s|\\+[nrt])*,(?:\s|\\+[nrt])*b?\\*[\"']"
    r"|\\*[\"']?[ \t]*(?:\r?\n|\\+n)[ \t]*-[ \t]+\\*[\"']?)"
)
_NEXT = re.compile(_SEPARATOR)
_ARGUMENT = re.compile(r"[^\"'\\\n]*")
_LIST = compiled(rf"(?:[\"'/]|-[ \t]+)({_PROGRAM}){_SEPARATOR}")

#: Maximum number of arguments that are examined.
MOST_ARGUMENTS = 40


def is_program(name: str) -> bool:
    """Return whether this is a program with passwords in its arguments, with or without its path."""
    return _IS_PROGRAM.fullmatch(name) is not None


def argument_passwords(arguments: Sequence[str]) -> Iterator[tuple[int, Span]]:
    """Yield the index of each argument with a password, and the password's span. The first is the program."""
    arguments = [argument.replace('"', " ") for argument in arguments]
    quotes = ['"' if " " in argument else "" for argument in arguments]
    words = [f"{quote}{argument}{quote} " for quote, argument in zip(quotes, arguments, strict=True)]
    starts = list(accumulate(map(len, words), initial=0))
    for find in FINDERS:
        for start, end in find("".join(words)):
            index = bisect_right(starts, start) - 1
            offset = starts[index] + len(quotes[index])
            yield index, (start - offset, end - offset)


def _find(text: str) -> Iterator[Span]:
    end = 0
    for match in _LIST.finditer(text):
        if match.start() < end:
            continue
        spans = list(_arguments(text, match.start(1)))
        end = spans[-1][1]
        for index, (start, stop) in argument_passwords([text[slice(*span)] for span in spans]):
            yield spans[index][0] + start, spans[index][0] + stop


def _arguments(text: str, start: int) -> Iterator[Span]:
    for _ in range(MOST_ARGUMENTS):
        end = _ARGUMENT.match(text, start).end()  # type: ignore[union-attr]
        yield start, end
        separator = _NEXT.match(text, end)
        if separator is None:
            return
        start = separator.end()


#: The rule for lists within a text. Lists of JSON strings are read by `json_text`.
ARGUMENTS = Rule(kind="command-password", anchor=rf"[\"'/ ]{_PROGRAM}{_SEPARATOR}", find=_find)

#: Anchor of the options in a list, for the first scan. The names of the programs would make it slower.
_OPTION = r"-(?:[uUapPwAXhsk]|-(?:user|auth|proxy|pass|dest))"
OPTIONS_ANCHOR = rf"[\"'],(?:\s|\\+[nrt])*\\*[\"']{_OPTION}|\\n *- \\*[\"']?{_OPTION}"
