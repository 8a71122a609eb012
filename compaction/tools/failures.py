"""Find the lines of a tool output that report a failure of tests, compilers, runtimes, databases or shells.

Many tools return plain text without an error flag. A failure is recognized by a line that occurs only in
failures: a test summary with failures, a compiler diagnostic, a traceback.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import re2

from compaction.utf8 import utf8

#: Patterns of lines that report a failure, by tool. RE2 syntax, anchored at the beginning of a line.
_SIGNS = {
    "pytest": (
        r"^=+ (?:FAILURES|ERRORS) =+$",
        r"^(?:FAILED|ERROR) \S+\.py\b",
        r"^=+ .*\b[1-9]\d* (?:failed|errors?)\b.* in .*=+$",
        r"^(?:\d+ \w+, )*[1-9]\d* (?:failed|errors?)\b.* in [\d.]+s",
        r"^E   +\S",
    ),
    "unittest": (r"^FAILED \((?:failures|errors|unexpected successes)=", r"^(?:FAIL|ERROR): \w+ \("),
    "python": (r"^Traceback \(most recent call last\):", r"^[\w.]*(?:Error|Exception|Warning as error)\b: ?"),
    "npm": (r"^npm (?:ERR!|error) ", r"^ ?ERR_PNPM_", r"^error Command failed with exit code "),
    "jest": (
        r"^ *(?:Test Files|Tests):? +[1-9]\d* failed",
        r"^ *[1-9]\d* failing$",
        r"^ +● .+ › ",
        r"^✖ [1-9]\d* problems?",
    ),
    "java": (
        r"^Exception in thread ",
        r"^Caused by: [\w.$]+",
        r"^\[ERROR\] ",
        r"^\[INFO\] BUILD FAILURE",
        r"^FAILURE: Build failed",
        r"^[\w.$]+(?:Exception|Error)$",
        r"^\S+\.java:\d+: error: ",
    ),
    "rust": (
        r"^error(?:\[E\d{4}\])?: ",
        r"^test result: FAILED",
        r"^thread '[^']*' (?:\(\d+\) )?panicked at",
    ),
    "typescript": (r"^\S+\(\d+,\d+\): error TS\d+: ", r"^\S+:\d+:\d+ - error TS\d+: ", r"^error TS\d+: "),
    "go": (r"^ *--- FAIL: ", r"^FAIL(?:\t|$)", r"^panic: ", r"^(?:\./|vet: )?\S+\.go:\d+:\d+: "),
    "c": (r"^\S+:\d+(?::\d+)?: (?:fatal )?error: ", r"^collect2: error: ", r"undefined reference to "),
    "make": (r"^make(?:\[\d+\])?: \*\*\* ", r"^CMake Error", r"^ninja: build stopped"),
    "dotnet": (r"error (?:CS|MSB|NU)\d{4}: ", r"^Build FAILED\.", r"^Failed! +- Failed: +[1-9]"),
    "ruby": (r"^[1-9]\d* examples?, [1-9]\d* failures?", r"^\S+\.rb:\d+:in [`'].*\(\w+Error\)"),
    "php": (r"^(?:PHP )?(?:Fatal|Parse) error: ", r"^FAILURES!$"),
    "curl": (r"^curl: \(\d+\) ",),
    "sql": (
        r"^(?:psql:\S+ )?ERROR:  ",
        r"^ERROR \d{4} \(",
        r"^(?:psycopg2?|sqlite3|pymysql|asyncpg|MySQLdb|sqlalchemy)\.[\w.]+: ?",
        r"^(?:Runtime|Parse) error (?:near|in) ",
        r"SQLSTATE\[",
    ),
    "shell": (
        r"^(?:-?bash|sh|zsh|/bin/sh|/bin/bash)(?:: line \d+|: \d+)?: ",
        r"^fatal: ",
        r"^Segmentation fault",
        r"^Killed$",
        r"^[\w./-]+: (?:cannot |can't )",
        r"^[\w./-]+: .*: (?:No such file or directory|Permission denied|Is a directory)$",
    ),
    "containers": (r"^Error response from daemon: ", r"^Error from server \("),
    "terraform": (r"^│ Error: ",),
    "elixir": (r"^ *\*\* \(\w[\w.]*(?:Error|EXIT|exit)\w*[\) ]",),
    "pip": (r"^ERROR: (?:Could not|No matching|Cannot|Failed|Command errored|pip's)",),
    "mise": (r"^\[[\w:.-]+\] ERROR task failed", r"^mise ERROR "),
    "linters": (r"^Found [1-9]\d* errors?\b",),
    "edits": (r"^\[?Your proposed edit has introduced new syntax error",),
    "node": (r"^Uncaught \w*Error\b", r"^Error: ", r"^Error \[ERR_"),
}

#: Lines of context that are kept before and after a line that reports a failure.
_BEFORE, _AFTER = 3, 12

#: A line that belongs to the failure before it: a stack frame, an indented detail, a source excerpt.
_CONTINUES = re.compile(
    r"\s+\S|[>|^~\-=_]|at |\.\.\.|Caused by|During handling|The above exception|E  |\d+ \||LINE \d+:"
    r"|HINT:|DETAIL:"
)

#: The beginning of a test report in which all following lines belong to the failure.
_REPORT = re2.compile(r"(?m)^(?:=+ (?:FAILURES|ERRORS) =+|={60,}\n(?:FAIL|ERROR): .*|failures:)$")


def _signs() -> re2.Set:
    options = re2.Options()
    options.never_nl = False
    options.log_errors = False
    signs = re2.Set.SearchSet(options)
    for patterns in _SIGNS.values():
        for pattern in patterns:
            signs.Add(f"(?m){pattern}")
    signs.Compile()
    return signs


_SET = _signs()
_LINE = re2.compile(
    "(?m)" + "|".join(f"(?:{pattern})" for patterns in _SIGNS.values() for pattern in patterns)
)


@dataclass(frozen=True, slots=True)
class Lines:
    """A range of lines, from `first` up to and excluding `end`, counted from 0."""

    first: int
    end: int


def reports_failure(text: str) -> bool:
    """Return whether a line of the output reports a failure. Time is linear in the text."""
    return bool(_SET.Match(utf8(text)))


def failing_lines(text: str) -> list[Lines]:
    """Return the lines that report a failure and those that explain it, in order and without overlaps."""
    lines = text.split("\n")
    return list(_merged(_ranges(text, lines)))


def _ranges(text: str, lines: list[str]) -> Iterator[Lines]:
    encoded = utf8(text)
    report = _REPORT.search(encoded)
    limit = len(lines)
    if report:
        first = encoded.count(b"\n", 0, report.start())
        yield Lines(first, limit)
        limit = first
    for number, line in enumerate(lines[:limit]):
        if _LINE.search(utf8(line)):
            end = number + 1
            while end < limit and end - number <= _AFTER and _CONTINUES.match(lines[end]):
                end += 1
            yield Lines(max(0, number - _BEFORE), end)


def _merged(ranges: Iterator[Lines]) -> Iterator[Lines]:
    latest: Lines | None = None
    for found in sorted(ranges, key=lambda item: item.first):
        if latest is None:
            latest = found
        elif found.first <= latest.end:
            latest = Lines(latest.first, max(latest.end, found.end))
        else:
            yield latest
            latest = found
    if latest is not None:
        yield latest
