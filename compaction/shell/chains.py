"""Determine which failed commands a later command settles, because it ran them again and succeeded."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import NamedTuple

from compaction.shell.effects import deleted_paths
from compaction.shell.reads import within
from compaction.shell.runners import SelectedTests, is_same_folder, selected_tests
from compaction.shell.syntax import MAX_LENGTH, has_pipe, separators, without_heredocs
from compaction.text_cache import once_per_text

#: Maximum number of characters of a command in a recap.
LENGTH = 120

#: The end of a command that only limits or redirects its output.
_LIMITED = re.compile(r" ?(?:\| ?(?:head|tail)(?: \+?[\w=-]+)*|2>&1) ?$")
_MOST_LIMITS = 4
#: The end of a command that only shows a part of its output.
_FILTERED = re.compile(r"(?: 2>&1)? \| ?(?:grep|egrep|rg|head|tail|tee|cat|sed|awk|sort|uniq|wc)\b.*$")
_TOKEN_AFTER = re.compile(r"&&|\|\||;")
#: Commands after which the others of the same line run on other files.
_SWITCHES = re.compile(r"git (?:stash|checkout|switch|worktree)\b")
#: Commands that prepare the one that follows. Their failure no longer matters once that one succeeds.
_PREPARES = re.compile(
    r"(?:(?:cat [^|]*>|echo|printf|true|:|sleep|mkdir|export|source|\.|set|unset|clear|date|which|touch|ls"
    r"|pwd|git add)"
    r"|(?:(?:make|just|task|npm run|yarn|pnpm|mise(?: run)?|cargo|go|ruff|npx) )?"
    r"(?:fmt|format|gofmt|goimports|black|isort|prettier|rustfmt))(?: |$)"
)
#: Commands that only change files.
_WRITES = re.compile(r"(?:cat|tee|rm|mv|cp|chmod|echo|ls|apply_?patch|sed -\w*i)\b")
#: The end of a line after which the command continues.
_OPEN_END = re.compile(r"(?:&&|\|\|?|;|\b(?:do|then|else)|[{(])$")
_FILE = re.compile(r"\w[./]|[./]\w")
_PYTHON = re.compile(r"^python[\d.]+(?= )")
_TESTS = "tests"
#: Number of failures that are tracked, the newest ones.
_MOST_FAILURES = 100
#: Number of characters at the end of a command to search for a limit.
_MOST_SEARCHED = 160
#: Number of characters of a command to search for here-documents.
_MOST_READ = 10 * MAX_LENGTH
#: A cut command is recognized by at least this many characters.
_CUT_MIN = 12


class Step(NamedTuple):
    """A simple command of a line, without what limits its output, and the folder that it runs in.

    `is_cut`: the end of the text is missing.
    """

    text: str
    folder: str = ""
    tests: SelectedTests | None = None
    is_cut: bool = False

    @property
    def programs(self) -> tuple[str, ...]:
        """The program, after the common name of all that run tests."""
        program = self.text.partition(" ")[0]
        return (_TESTS, program) if self.tests else (program,)

    def settles(self, failed: Step) -> bool:
        """Whether the success of this step shows that the failed one would succeed now."""
        if self.tests and failed.tests and self.tests.covers(failed.tests):
            return True
        is_same = self.text == failed.text or (
            failed.is_cut and len(failed.text) >= _CUT_MIN and self.text.startswith(failed.text)
        )
        return is_same and is_same_folder(self.folder, failed.folder)


@once_per_text(1 << 12)
def subject(command: str) -> str:
    """Return a command as one line, without what limits its output at the end."""
    line = one_line(command)
    for _ in range(_MOST_LIMITS):
        found = _LIMITED.search(line, max(0, len(line) - _MOST_SEARCHED))
        if not found or not found.start():
            break
        line = line[: found.start()]
    return line


def one_line(command: str) -> str:
    """Return a command without comments, with its lines joined by semicolons, except within quotes."""
    if "\n" not in command.strip():
        return " ".join(command.split())
    text = command[:MAX_LENGTH].replace("\\\n", " ")
    breaks = [found.start() for found in separators(text) if found["separator"] == "\n"]
    lines = [text[start:end] for start, end in pairwise([0, *breaks, len(text)])]
    lines = [line for line in (" ".join(line.split()) for line in lines) if line and line[0] != "#"]
    joined = "".join(f"{line} " if _OPEN_END.search(line) else f"{line}; " for line in lines)
    return joined.rstrip("; ")


def program_run(command: str) -> str:
    """Return a command that writes a file from a here-document and then runs a program, otherwise "".

    The content of the file is left out.
    """
    bare = without_heredocs(command[:_MOST_READ])
    return bare if any(not _WRITES.match(step.text) for step in failed_steps(bare)) else ""


def unfiltered(command: str) -> str:
    """Return `subject` without the programs at the end that only show a part of the output."""
    line = subject(command)
    found = _FILTERED.search(line) if "|" in line else None
    if not found or not found.start() or _TOKEN_AFTER.search(line, found.start() + 1):
        return line
    return line[: found.start()]


def succeeded_steps(command: str) -> Sequence[Step]:
    """Return the steps that succeeded if the command did: those after the last separator other than `&&`.

    Those of `a || b` may have failed, those of `a &` are still running. Those that run on other files, after
    `git stash`, do not count.
    """
    steps: list[Step] = []
    if command.rstrip().endswith("&"):
        return steps
    for separator, step in _steps(command):
        if separator in ("||", "&") or _SWITCHES.match(step.text):
            return []
        if separator != "&&":
            steps.clear()
        steps.append(step)
    return steps


@once_per_text(1 << 10)
def failed_steps(command: str) -> Sequence[Step]:
    """Return the steps that must succeed before the failure of the command is settled.

    What filters the output is not part of a step: a later run shows another part of the same output.
    """
    found = [step for _, step in _steps(command, is_filtered=True)]
    steps = [step for step in found[:-1] if not _PREPARES.match(step.text)] + found[-1:]
    return tuple(dict.fromkeys(steps))


@dataclass(slots=True)
class Failures:
    """The failed commands that no later command has settled, by their texts, with the steps that remain."""

    _left: dict[str, list[Step]] = field(default_factory=dict)
    _texts: dict[str, set[str]] = field(default_factory=dict)  #: of commands, by the programs of their steps

    @classmethod
    def of(cls, commands: Iterable[str], settled: Mapping[str, Collection[str]]) -> Failures:
        """Return the failures of these commands, without the steps that were settled, by their texts."""
        failures = cls()
        for command in commands:
            known = settled.get(command, ())
            failures._open(command, [step for step in failed_steps(command) if step.text not in known])
        return failures

    def settled_steps(self) -> dict[str, list[str]]:
        """Return the texts of the steps that were settled, by the texts of the commands that have others."""
        done = {
            text: [step.text for step in failed_steps(text) if step not in steps]
            for text, steps in self._left.items()
        }
        return {text: steps for text, steps in done.items() if steps}

    def add(self, text: str, command: str) -> list[str]:
        """Note that a command failed. Returns the texts of earlier failures of the same steps."""
        steps = list(failed_steps(command))
        earlier = [
            known for known in self._named(steps) if known != text and _is_same(self._left[known], steps)
        ]
        for known in (*earlier, text):
            self._left.pop(known, None)
        self._open(text, steps)
        if len(self._left) > _MOST_FAILURES:
            del self._left[next(iter(self._left))]
        return earlier

    def _open(self, text: str, steps: list[Step]) -> None:
        self._left[text] = steps
        for step in steps:
            self._texts.setdefault(step.programs[0], set()).add(text)

    def _named(self, steps: Sequence[Step]) -> list[str]:
        """Return the texts of the open failures with the programs of these steps, in a stable order."""
        texts = chain.from_iterable(self._texts.get(step.programs[0], ()) for step in steps)
        return sorted({text for text in texts if text in self._left})

    def settle(self, text: str, command: str) -> Iterator[str]:
        """Yield the texts of failures that the success of a command settles, or whose scripts it deletes."""
        if self._left.pop(text, None) is not None:
            yield text
        for step in succeeded_steps(command) if self._left else ():
            for program in step.programs:
                yield from self._settle(step, program)
        if self._left and (paths := deleted_paths(command)):
            yield from self._without_files(paths)

    def _settle(self, step: Step, program: str) -> Iterator[str]:
        for text in sorted(self._texts.get(program, ())):
            steps = self._left.get(text, [])
            steps[:] = [failed for failed in steps if not step.settles(failed)]
            if not steps:
                self._texts[program].discard(text)
                if self._left.pop(text, None) is not None:
                    yield text

    def _without_files(self, paths: Sequence[str]) -> Iterator[str]:
        """Yield the texts of the failures of commands that ran one of the files, which no longer exist."""
        for text, steps in list(self._left.items()):
            if _names(steps, paths):
                del self._left[text]
                yield text


def _names(steps: Iterable[Step], paths: Collection[str]) -> bool:
    """Whether one of the steps ran one of the files. Other arguments may be data or the name of a task."""
    scripts = filter(None, (next(filter(_FILE.search, step.text.split()), "") for step in steps))
    return any(f"/{script}".endswith(f"/{path}") for script in scripts for path in paths)


def _is_same(one: Sequence[Step], other: Sequence[Step]) -> bool:
    return len(one) == len(other) and all(
        step.settles(another) and another.settles(step) for step, another in zip(one, other, strict=True)
    )


def _steps(command: str, *, is_filtered: bool = False) -> Iterator[tuple[str, Step]]:
    """Yield the steps of a command line with the separators before them, apart from changes of the folder."""
    text = without_heredocs(command[:MAX_LENGTH]).strip()
    is_cut = text.endswith("…") or len(command) > MAX_LENGTH
    folder, outer, separator, start = "", "", "", 0
    ends = [(found.start(), found.end(), found["separator"]) for found in separators(text)]
    for end, following, next_separator in [*ends, (len(text), len(text), "")]:
        part = text[start:end].strip()
        opened = part.count("(") - part.count(")")
        if opened > 0 and part.startswith("("):
            outer = folder
        line = subject(part.strip("() \t"))
        if line.startswith("cd "):
            folder = within(folder, line[3:].strip("'\" "))
        elif line and not line.startswith("#"):
            if is_filtered:
                line = _FILTERED.sub("", line)
            line = _PYTHON.sub("python", line)
            if folder.startswith("/"):
                line = line.replace(f" {folder}/", " ")
            is_last = is_cut and end == len(text)
            line = line.rstrip("…") if is_last else line
            # The status of a pipe is that of its last program.
            tests = None if is_last or has_pipe(line) else selected_tests(line, folder)
            yield separator, Step(line, folder, tests, is_last)
        if opened < 0 and part.endswith(")"):  # the end of a subshell
            folder = outer
        # What follows a change of the folder, or an empty line, depends on the command before.
        is_bound = not line or line.startswith("cd ")
        start, separator = following, _stronger(separator, next_separator) if is_bound else next_separator


def _stronger(one: str, other: str) -> str:
    return one if other in ("&&", "\n") else other
