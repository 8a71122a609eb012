"""The commands and other calls of a recap, with their outcomes.

Calls that differ only in how much of the output they show (`pytest`, `pytest 2>&1 | tail -5`) are runs of one
command, and the newest outcome replaces the others.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from itertools import islice

from compaction.identifiers.extract import contains_handle
from compaction.jsontext import loads_fast
from compaction.messages import JSON, Message, ToolResult
from compaction.recap.values import Item, Recap, Status
from compaction.shell.chains import LENGTH, Failures, subject, unfiltered
from compaction.shell.effects import is_inspection
from compaction.shell.runners import command_of
from compaction.shortening import shortened
from compaction.text_cache import once_per_text
from compaction.tools.actions import Action
from compaction.tools.failures import reports_failure
from compaction.tools.outcomes import (
    hides_outcome,
    is_error,
    is_started,
    is_stopped,
    passed_line,
    started_line,
)

_ERROR_LINE = re.compile(r"\b(?:error|fail(?:ed|ure)?|fatal|panic|exception|cannot)\b|Error\b", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]{2}")
#: Lines that agents and npm add to an output: its status, its process, the working folder, the prompt, the
#: command, the usage of a sub-agent.
_ADDED = re.compile(
    r"<|\[?Command (?:finished|exited) with |\(no output\)|Shell cwd was reset to |\[Jupyter current working "
    r"|\[Python Interpreter: |(?:Exit Code|Process Group PGID|Background PIDs|Signal|Stderr): "
    r"|[\w ]+: \((?:none|empty|root)\)$|\w+@[\w.-]+:\S* ?[#$]$"
    r"|(?:\[[\w:.-]+\] )?(?:\$ |Finished in |Done in )|Waiting for the debugger to disconnect"
    r"|Debugger attached\.|agentId: \w+|(?:Command|Directory): |(?:total_tokens|tool_uses|duration_ms): \d"
    r"|To check progress before completion|> \S"
)
#: What agents add to the last line of the output of a command.
_APPENDED = re.compile(r"(?:</(?:output|stdout|stderr)>|\[Python Interpreter: [^\]\n]*\])$")
#: A line below an excerpt of the source, which points to the place of an error in it: `  |    ^~~~`.
_POINTER = re.compile(r"(?:\[[\w:.-]+\]\s+)?(?:\|\s*)?[~^]+$")
#: Lines that only report that something failed, as the status does.
_BARE_FAILURE = re.compile(
    r"FAIL(?:\s+\S+\s+(?:\S+|\[build failed\]))?$|exit status \d+$"
    r"|(?:\[[\w:.-]+\] )?ERROR task failed$|mise ERROR |make(?:\[\d+\])?: \*\*\* "
    r"|npm (?:ERR!|error) (?:code|path|command|location|workspace|errno|syscall|A complete log)\b"
    r"|Traceback \(most recent call last\):$|.*: too many errors$"
    r"|npm (?:ERR!|error) Lifecycle script |Error: Process completed with exit code \d"
)
#: Names of tools that only look something up, in the text of an item: `get_order`, `listIssues`.
_LOOKUP = re.compile(r"`(?:mcp__[\w-]+__)?(?i:calculate|fetch|find|get|list|look_?up|read|search)(?=[-_A-Z])")
#: The result of a call that the user rejected in Claude Code.
_REJECTED = re.compile(r"\s*The user doesn't want to (?:proceed with this tool use|take this action)")

#: The status of a command. The output of one that ran does not show whether it succeeded, and one that was
#: started continues in the background until it ends or is stopped.
_OK, _FAILED, _RAN, _STARTED, _STOPPED = "ok", "failed", "ran", "started", "stopped"
#: The beginnings of notes on a run that did not show its outcome.
_UNKNOWN = tuple(f"{status} t" for status in (_RAN, _STARTED, _STOPPED))
#: Number of outputs whose line a process remembers.
_REMEMBERED = 1 << 13
_MAX_LINE = 160
#: Maximum length of the values of a JSON result together, and of each key and value.
_MAX_VALUES, _MAX_VALUE = 120, 32
#: Maximum number of values that are examined.
_MOST_VALUES = 100
#: Number of characters at the end of an output to search for its line, and for that of a failure.
_WINDOW, _FAILURE_WINDOW = 4_000, 20_000


@dataclass(slots=True)
class Commands:
    """The newest run of each command, by the text of its item, in chronological order."""

    items: dict[str, Item] = field(default_factory=dict)
    _failures: Failures = field(default_factory=Failures)
    _runs: dict[str, str] = field(default_factory=dict)  #: the text of each command without filters

    def fold(self, previous: Recap) -> None:
        """Add the commands of an earlier recap."""
        self.items.update((item.text, item) for item in previous.facts)
        for item in previous.facts:
            if item.text.startswith("`"):
                self._runs[unfiltered(item.text.strip("`"))] = item.text
            if is_failure(item):
                self._failures.add(item.text, item.text.strip("`"))

    def add(self, action: Action, result: ToolResult, message: Message) -> None:
        """Add a run. One that only shows something is left out, unless it failed.

        If its outcome is unknown, it does not replace one that failed.
        """
        item = _outcome_item(action, result, message)
        if _is_rejected(result):
            self.items.setdefault(item.text, item)
            return
        command = unfiltered(action.command) if action.command else item.text
        earlier = self.items.get(self._runs.get(command, item.text))
        is_listed = bool(action.label or item.status) or not is_inspection(action.command)
        if not _is_known(item) and (not is_listed or (earlier and is_failure(earlier))):
            return
        self.items.pop(item.text, None)
        if earlier and earlier.text != item.text and not is_failure(earlier):
            del self.items[earlier.text]  # with another filter of its output
        self._runs[command] = item.text
        if _is_known(item):
            self._settle(item, action.command)
        if is_listed:
            self.items[item.text] = item

    def _settle(self, item: Item, command: str) -> None:
        """Leave out the failures that this run settles, or repeats in other words."""
        texts = self._failures.add if item.status else self._failures.settle
        for text in texts(item.text, command):
            if text in self.items and is_failure(self.items[text]):
                del self.items[text]


def _outcome_item(action: Action, result: ToolResult, message: Message) -> Item:
    """Return the recap item for a command or another labeled call, with the outcome of this run."""
    if _is_rejected(result):
        failed, outcome = False, f"rejected by the user t{message.turn}"
    else:
        status, line = _outcome(action, result)
        failed = status == _FAILED
        outcome = f"{status} t{message.turn}" + (f' "{line}"' if line else "")
    shown = shortened(subject(action.command), LENGTH) if action.command else action.label
    return Item(
        text=f"`{shown}`",
        notes=(outcome,),
        status=Status.OPEN if failed else None,
        sources=(message.position,),
    )


def _outcome(action: Action, result: ToolResult) -> tuple[str, str]:
    """Return the status of a run, and the line of its output that says most."""
    if is_started(result.text):
        return _STARTED, shortened(started_line(result.text)[1], _MAX_LINE)
    if is_stopped(result.text):
        return _STOPPED, ""
    failed = is_error(result, shows_file=action.shows_file, command=action.command)
    line = "" if failed else _result_line(action, result.text)
    line = line or key_line(result.text, failed)
    if action.command.startswith(line.removesuffix("…")):
        line = ""  # the terminal repeats the command
    if failed:
        return _FAILED, line
    return _RAN if hides_outcome(action.command, result.text) else _OK, line


def _result_line(action: Action, text: str) -> str:
    """Return the values of a JSON result, or the line with the number of passed tests, if there are any.

    A table of the coverage may follow that line.
    """
    if not action.command:
        return _values(text, action.label)
    return shortened(passed_line(text[-_WINDOW:]), _MAX_LINE) if command_of(action.command) else ""


def is_failure(item: Item) -> bool:
    """Return whether the newest run of a command failed, even if it is no longer open."""
    return item.status is Status.OPEN or any(note.startswith("failed t") for note in item.notes)


def is_lookup(item: Item) -> bool:
    """Return whether an item is a successful call of a tool that only looks something up."""
    return item.status is None and _LOOKUP.match(item.text) is not None


def _is_known(item: Item) -> bool:
    """Return whether the newest run of a command showed its outcome."""
    return not any(note.startswith(_UNKNOWN) for note in item.notes)


def _is_rejected(result: ToolResult) -> bool:
    """Return whether the user did not allow the call, so that it did not run."""
    return _REJECTED.match(result.text) is not None


@once_per_text(_REMEMBERED)
def _values(text: str, label: str) -> str:
    """Return the short values of a JSON result with their keys, except values that the call contains.

    Outermost values come first. Returns "" if the result is not JSON.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return ""
    try:
        left: deque[tuple[str, JSON]] = deque([("", loads_fast(text))])
    except ValueError:
        return ""
    known, found, room = {"", *label.split()}, list[str](), _MAX_VALUES
    for _ in range(_MOST_VALUES):
        if not left or room <= 0:
            break
        key, value = left.popleft()
        if isinstance(value, dict):
            left.extend(islice(value.items(), _MOST_VALUES))
        elif isinstance(value, list):
            left.extend((key, item) for item in islice(value, _MOST_VALUES))
        elif value is not None and not isinstance(value, bool):
            shown = " ".join(str(value).split())
            line = " ".join(f"{key} {shown}".split())
            if shown in known or contains_handle(line) or max(len(key), len(shown)) > _MAX_VALUE:
                continue
            known.add(shown)
            found.append(line)
            room -= len(line) + 2
    return ", ".join(found)


@once_per_text(_REMEMBERED)
def key_line(text: str, failed: bool) -> str:
    """Return the most informative line of an output: the last error line of a failure, or the last line."""
    last = bare = ""
    is_pointer = False
    window = _FAILURE_WINDOW if failed else _WINDOW
    for line in map(str.strip, reversed(text[-window:].splitlines())):
        was_pointer, is_pointer = is_pointer, _POINTER.match(line) is not None
        if was_pointer or is_pointer:
            continue
        if not _LETTERS.search(line) or _ADDED.match(line) or contains_handle(line):
            continue
        last = last or line
        if failed and _BARE_FAILURE.match(line):
            bare = bare or line
        elif not failed or _ERROR_LINE.search(line) or reports_failure(line):
            return shortened(_APPENDED.sub("", line), _MAX_LINE)
    return shortened(_APPENDED.sub("", bare or last), _MAX_LINE)
