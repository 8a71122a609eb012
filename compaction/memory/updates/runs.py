"""Results of test runs: failing and passing tests, and the earlier failures that a run settles."""

from __future__ import annotations

import re
from dataclasses import dataclass

import re2

from compaction.shell.runners import (
    WRAPPERS,
    SelectedTests,
    command_of,
    path_covers,
    runner_of,
    selected_tests,
)
from compaction.tools.outcomes import exit_code, hides_outcome, reports_success
from compaction.utf8 import utf8

_FAILED = (
    re.compile(
        r"^(?:FAILED|ERROR)[ \t]+(?P<test>[\w./\\-]+(?:::\S+)?)(?:\s+-\s+(?P<why>.*))?$", re.MULTILINE
    ),
    re.compile(r"^(?P<test>[\w./-]+::\S+)[ \t]+(?:FAILED|ERROR)\b(?P<why>)", re.MULTILINE),
    re.compile(r"^(?:FAIL|ERROR): (?P<test>\w+ \([\w.<>]+\))(?P<why>)", re.MULTILINE),
    re.compile(r"^[ \t]*--- FAIL: (?P<test>\S+)(?P<why>)", re.MULTILINE),
    re.compile(r"^FAIL[\t ]+(?P<test>[\w./-]+) \[(?P<why>[^\]\n]+)\]$", re.MULTILINE),
    re.compile(r"^test (?P<test>\S+) \.\.\. FAILED(?P<why>)$", re.MULTILINE),
    re.compile(
        r"^[ \t]*FAIL\s+(?P<test>\S+\.(?:test|spec)\.\w+(?: > [^\n]{1,120})?)(?P<why>)$", re.MULTILINE
    ),
    re.compile(r"^[ \t]*[✕×✗]\s+(?P<test>[^\n]{3,120}?)(?: \(?\d+ ?ms\)?)?(?P<why>)$", re.MULTILINE),
)
_PASSED = (
    re.compile(r"^(?P<test>[\w./-]+::\S+)[ \t]+PASSED\b", re.MULTILINE),
    re.compile(r"^(?P<test>\w+ \([\w.]+\)) \.\.\. ok$", re.MULTILINE),
    re.compile(r"^[ \t]*--- PASS: (?P<test>\S+)", re.MULTILINE),
    re.compile(r"^test (?P<test>\S+) \.\.\. ok$", re.MULTILINE),
    re.compile(r"^[ \t]*(?:✓|✔)\s+(?P<test>[^\n]{3,120}?)(?: \(?\d+ ?ms\)?)?$", re.MULTILINE),
)
_GO_PACKAGE_FAIL = re.compile(r"^FAIL[\t ]+\S+[\t ]+[\d.]+s$", re.MULTILINE)
_BAD_SUMMARY = re.compile(
    r"\b[1-9]\d* (?:failed|failing|errors?)\b|^FAILED \(|^FAIL\b|test result: FAILED|\[build failed\]"
    r"|no such file|command not found|No module named|collected 0 items|no tests ran",
    re.MULTILINE,
)
_WHOLE_TREE = frozenset({".", "./...", "./", "..."})

#: Maximum number of failures of one run that are listed separately.
MAX_FAILURES = 30
#: Number of characters to parse at the end of an output, where the summary is.
_WINDOW = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One test run.

    `tests` are those that the command selects. `failing` maps failing tests to their messages. `passed` is
    the result of the whole run, or None if its output does not show it.
    """

    runner: str
    command: str
    tests: SelectedTests | None
    failing: dict[str, str]
    passing: frozenset[str]
    passed: bool | None

    def settles(self, test: str, command: str) -> bool:
        """Return whether a test that failed in `command` is known to pass now."""
        if test in self.failing:
            return False
        if test in self.passing or (test == command and self.passed):
            return True
        if test == command:  # the failed run named no test
            failed = selected_tests(command)
            if self.tests and failed:
                return bool(self.passed) and self.tests.covers(failed)
        if runner_of(command) not in (self.runner, "") and self.runner not in WRAPPERS:
            return False
        whole = self.command == command or (self.tests is not None and _covers(self.tests, test))
        # A failed run proves that unnamed tests pass only if it names its failures.
        return whole and bool(self.passed or self.failing)


def run_of(command: str, output: str, failed: bool) -> Run | None:
    """Parse the output of a test command. Return None if the command runs no tests.

    `failed` is whether the tool call ended with an error.
    """
    segment = command_of(command)
    if segment is None:
        return None
    end = output[-_WINDOW:]
    failing: dict[str, str] = {}
    for pattern in _FAILED:
        for found in pattern.finditer(end):
            if len(failing) < MAX_FAILURES:
                failing.setdefault(found["test"].strip(), (found["why"] or "").strip())
    passing = frozenset(found["test"].strip() for pattern in _PASSED for found in pattern.finditer(end))
    bad = (
        failed
        or bool(failing)
        or _BAD_SUMMARY.search(end) is not None
        or _GO_PACKAGE_FAIL.search(end) is not None
    )
    is_shown = not hides_outcome(command, output)
    good = exit_code(output) == 0 or reports_success(end) or not end.strip()
    return Run(
        runner=runner_of(segment),
        command=segment,
        tests=selected_tests(segment),
        failing=failing,
        passing=passing - failing.keys(),
        passed=False if bad else True if good and is_shown else None,
    )


def _covers(tests: SelectedTests, test: str) -> bool:
    """Return whether the selected tests include this one, judging by their words."""
    if patterns := tests.patterns:
        return all(_selects(pattern, test) for pattern in patterns)
    targets = list(filter(_is_target, tests.targets))
    return not targets or any(
        word in _WHOLE_TREE
        or word.rstrip("/.").removeprefix("./") in test
        or path_covers(word.rstrip("/"), test)
        for word in targets
    )


def _is_target(word: str) -> bool:
    return "/" in word or "::" in word or "." in word or word.startswith("test")


def _selects(selection: str, test: str) -> bool:
    """Return whether a selection matches a test. The agent wrote it, so only RE2 limits the time it takes."""
    try:
        return re2.search(utf8(selection), utf8(test), _SELECTION) is not None
    except re2.error:
        return selection in test


def _selection_options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    return options


_SELECTION = _selection_options()
