"""Commands that run tests: the runner, and the tests that a command selects.

Agents run the same tests in different words: from another folder, with an absolute path, with other options
for the output. Two commands are compared by the tests that they select.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from compaction.shell.effects import segments
from compaction.shell.syntax import MAX_LENGTH

RUNNERS = {
    "pytest": r"(?:python[\d.]*\s+-m\s+)?(?:pytest|py\.test)\b",
    "unittest": r"python[\d.]*\s+-m\s+unittest\b|(?:python[\d.]*\s+)?\S*(?:manage\.py\s+test|runtests\.py)\b",
    "go test": r"go\s+test\b|gotestsum\b",
    "cargo test": r"cargo\s+(?:nextest|test)\b",
    "jest": r"(?:npx\s+)?jest\b",
    "vitest": r"(?:npx\s+)?vitest\b",
    "mocha": r"(?:npx\s+)?mocha\b",
    "npm test": r"(?:npm|yarn|pnpm|bun)\s+(?:run\s+)?test\S*",
    "make test": r"(?:make|just|task|mise\s+run|mise)\s+\S*(?:test|check)\S*",
    "tox": r"(?:tox|nox)\b",
    "rspec": r"(?:bundle\s+exec\s+)?rspec\b",
    "gradle test": r"(?:\./)?(?:gradlew?|mvnw?)\s+.*?\b(?:test|check|verify)\b",
}
#: Runners that call other runners, and whose name alone does not identify the tests.
WRAPPERS = frozenset({"make test", "npm test", "tox", "gradle test"})
#: Runners that report a failure at the end of their output, whatever the tests print.
REPORTING = frozenset({"make test", "tox", "gradle test"})

_RUNNER = re.compile("|".join(f"(?P<r{n}>^(?:{pattern}))" for n, pattern in enumerate(RUNNERS.values())))
_NAMES = tuple(RUNNERS)
_WITHOUT_TESTS = re.compile(
    r"--(?:version|help|collect-only|co|fixtures|setup-only|setup-plan|list|listTests|no-run|dry-run)\b"
    r"|\s-(?:h|list)\b"
)
_ASSIGNED = re.compile(
    r"^(?:(?:env|time|timeout(?:\s+-\S+)*\s+\d+\w?|sudo|uv run|poetry run|npx|[A-Za-z_]\w*=\S*)\s+)+"
)
_PIPED = re.compile(r"\d?>&\d|\d?>\s*+\S+|\|.*", re.DOTALL)
#: Assignments of variables that may decide whether tests succeed.
_VARIABLE = re.compile(r"(?<!\S)(?!PYTHON|RUST_|CI=|TERM=|NODE_OPTIONS=|\w*COLOR)[A-Za-z_]\w*=\S*")

#: Options that select tests, those that change what is compiled or which project is tested, and others that
#: take the next word as their value.
_SELECTING = (
    r"--?run|-k|-t|--filter|--grep|-g|-m|--testNamePattern|--testPath(?:Ignore)?Patterns?|--tests|--deselect"
    r"|--ignore(?:-glob)?|--exclude|--?skip"
)
_CHANGING = (
    r"--?tags|--features|-w|--workspace|--project|--package|--manifest-path|-c|--config|-C|--rootdir"
    r"|--settings|--ds"
)
_VALUED = r"--tb|-n|-p|-o|-W|--timeout|--maxfail|--durations|--?count|--?timeout|-r|--reporter|-j|--color|-D"
_OPTION = re.compile(rf"(?P<name>{_SELECTING}|{_CHANGING}|{_VALUED})(?:=(?P<value>.*))?")
#: Options whose value is a pattern of names.
_PATTERNS = frozenset({"run", "k", "t", "filter", "grep", "g"})
_IS_SELECTING, _IS_CHANGING = re.compile(_SELECTING), re.compile(_CHANGING)
#: Options of Cargo that select tests.
_PACKAGE = frozenset({"-p", "--package"})
#: Options without a value: those that run fewer tests, and those with which more tests may fail.
_FEWER = frozenset({"-short", "--lib", "--doc", "--bins", "--examples", "--onlyChanged", "--changed"})
_STRICTER = frozenset({"-race", "--release"})
_QUOTES = "'\""
_WORD = re.compile(r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"])+")
_WHOLE_TREE = frozenset({"", ".", "..."})
#: Tasks that run all tests, in one language or in all of them.
_EVERYTHING = re.compile(
    r"(?P<python>tox|nox)|(?P<javascript>(?:(?:npm|yarn|pnpm)(?: run)?|bun run) tests?(?::all|:ci)?)"
    r"|(?:make|just|task|mise(?: run)?) (?:check|tests?(?::all|:ci)?)"
)
_JAVASCRIPT = re.compile(r"jest|vitest|mocha|(?:npm|yarn|pnpm|bun) .*")


class SelectedTests(NamedTuple):
    """The tests that a command runs.

    `runner` is the name of the runner, or the whole task for one that calls others. `targets` are paths and
    names of tests, `selection` are options that select some of them, `setup` are options that change what is
    tested, and `demands` are options and variables without which tests may succeed that otherwise fail.
    `folder` is where the command runs, or "" for the folder of the session.
    """

    runner: str
    targets: tuple[str, ...] = ()
    selection: frozenset[str] = frozenset()
    setup: frozenset[str] = frozenset()
    demands: frozenset[str] = frozenset()
    folder: str = ""

    @property
    def patterns(self) -> list[str]:
        """The patterns that the names of the tests match."""
        options = (option.partition("=") for option in self.selection)
        return [value for name, _, value in options if name in _PATTERNS]

    def covers(self, other: SelectedTests) -> bool:
        """Whether this command runs all tests of the other one in the same setup, judging by their words."""
        if self.runner != other.runner and (self.setup or not _calls(self.runner, other.runner)):
            return False
        if self.setup != other.setup:
            return False
        if not (self.selection <= other.selection and other.demands <= self.demands):
            return False
        mine, others = _paths(self), _paths(other)
        if not mine and is_same_folder(self.folder, other.folder):
            return True
        mine, others = _placed(self, mine), _placed(other, others)
        return bool(mine and others) and all(any(path_covers(path, each) for path in mine) for each in others)


def _calls(task: str, runner: str) -> bool:
    """Whether a task runs all tests of another runner. `make test` does not run those of `make check`."""
    found = _EVERYTHING.fullmatch(task)
    if found is None:
        return False
    if found["python"]:
        return runner in ("pytest", "unittest")
    if found["javascript"]:
        return _JAVASCRIPT.fullmatch(runner) is not None
    return "check" not in runner or "check" in task


def runner_of(command: str) -> str:
    """Return the name of the runner that the command begins with, or "" if it is none."""
    found = _RUNNER.match(command)
    return _NAMES[int(str(found.lastgroup)[1:])] if found else ""


def bare_test_command(segment: str) -> str:
    """Return a simple command that runs tests without assignments, pipes and redirections, otherwise ""."""
    bare = " ".join(_PIPED.sub(" ", _ASSIGNED.sub("", segment.strip())).split())
    return bare if runner_of(bare) and not _WITHOUT_TESTS.search(bare) else ""


def command_of(command: str) -> str | None:
    """Return the last part of a shell command that runs tests, without pipes or redirections."""
    return next(filter(None, map(bare_test_command, reversed(list(segments(command))))), None)


def selected_tests(segment: str, folder: str = "") -> SelectedTests | None:
    """Return the tests that a simple command runs in a folder, or None if it runs none or is a script."""
    bare = bare_test_command(segment) if len(segment) <= MAX_LENGTH else ""
    found = _RUNNER.match(bare)
    if not found:
        return None
    name = runner_of(bare)
    targets, selection, setup = list[str](), set[str](), set[str]()
    assigned = _ASSIGNED.match(segment.strip())
    demands = set(_VARIABLE.findall(assigned[0]) if assigned else ())
    words = iter(_WORD.findall(bare[found.end() :]))
    for word in words:
        option = _OPTION.fullmatch(word)
        if option:
            value = next(words, "") if option["value"] is None else option["value"]
            chosen = f"{option['name'].lstrip('-')}={value.strip(_QUOTES)}"
            is_package = name == "cargo test" and option["name"] in _PACKAGE
            if is_package or _IS_SELECTING.fullmatch(option["name"]):
                selection.add(chosen)
            elif _IS_CHANGING.fullmatch(option["name"]):
                setup.add(chosen)
        elif word in _FEWER:
            selection.add(word)
        elif word in _STRICTER:
            demands.add(word)
        elif not word.startswith("-"):
            targets.append(word.strip(_QUOTES))
    runner = " ".join(found[0].split()) if name in WRAPPERS else name
    return SelectedTests(
        runner, tuple(targets), frozenset(selection), frozenset(setup), frozenset(demands), folder
    )


def _paths(command: SelectedTests) -> list[str]:
    """Return the paths of the targets. Without any, all tests of the folder run.

    A package of Go without `/...` is only the package itself, which `/.` at its end expresses.
    """
    is_go = command.runner == "go test"
    found: list[str] = []
    for target in command.targets or (("",) if is_go else ()):
        path = target.removesuffix("...").removeprefix("./").rstrip("/")
        if is_go and not target.endswith("..."):
            found.append(f"{path.rstrip('.')}/.".lstrip("/") if not path.startswith("/") else f"{path}/.")
        elif path not in _WHOLE_TREE:
            found.append(path)
    return found


def _placed(command: SelectedTests, paths: Sequence[str]) -> list[str]:
    """Return the paths from the folder of the session on."""
    folder = command.folder
    if not folder:
        return list(paths)
    return [path if path.startswith("/") else f"{folder}/{path}" for path in paths] or [folder]


def is_same_folder(one: str, other: str) -> bool:
    """Whether two folders may be the same: agents also name the folder of the session by its path."""
    if one.startswith("/") and other.startswith("/"):
        return one == other
    return one == other or (one.startswith("/") and not other) or (other.startswith("/") and not one)


def path_covers(path: str, other: str) -> bool:
    """Whether `other` is the path, or a file or test in it. One of them may begin with more folders."""
    if other == path or other.startswith((f"{path}/", f"{path}::")):
        return True
    longer, shorter = (path, other) if path.startswith("/") else (other, path)
    if not longer.startswith("/") or shorter.startswith("/"):
        return False
    if longer is path:
        file = shorter.partition("::")[0]
        return path.endswith(f"/{file}") or any(
            path.endswith(f"/{file[:end]}") for end, character in enumerate(file) if character == "/"
        )
    return f"/{path}/" in f"{other}/".replace("::", "/")
