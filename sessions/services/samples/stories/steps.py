"""The steps of the sample sessions: model responses with their tool calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .tool_outputs import python_module, search_hits, test_report

ROOT = "/home/mara/tidewater"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call and its output. Calls of contextapp's own tools have no output: they are executed."""

    tool: str
    arguments: dict[str, Any]
    output: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One model response with its tool calls, and the user message before it, if any.

    A step with `compacted_to` is a compaction by the client instead; its value is the summary. A step with
    `compacts` ends with a compaction that the user requests; its value is the reason. `pause` is in minutes.
    """

    user: str = ""
    thinking: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
    compacted_to: str = ""
    compacts: str = ""
    pause: int = 0


def step(*calls: Call, **texts: str) -> Step:
    """Return a response with these tool calls. `texts` are other fields of the step."""
    return Step(calls=calls, **texts)  # type: ignore[arg-type]  # `pause` is not a text


def read(path: str, sections: int) -> Call:
    """Read a whole file."""
    return Call(tool="Read", arguments={"file_path": f"{ROOT}/{path}"}, output=python_module(path, sections))


def grep(pattern: str, hits: int) -> Call:
    """Search the source."""
    arguments = {"pattern": pattern, "path": ROOT, "output_mode": "content"}
    return Call(tool="Grep", arguments=arguments, output=search_hits(pattern, hits))


def bash(command: str, output: str, *, is_error: bool = False) -> Call:
    """Run a shell command."""
    return Call(tool="Bash", arguments={"command": command}, output=output, is_error=is_error)


def edit(path: str, old: str, new: str, *, output: str = "", is_error: bool = False) -> Call:
    """Replace text in a file."""
    arguments = {"file_path": f"{ROOT}/{path}", "old_string": old, "new_string": new}
    done = f"The file {ROOT}/{path} has been updated."
    return Call(tool="Edit", arguments=arguments, output=output or done, is_error=is_error)


def pytest(target: str, passed: int, failed: tuple[str, ...] = ()) -> Call:
    """Run the tests."""
    return bash(f"pytest {target} -q", test_report(target, passed, failed), is_error=bool(failed))


def remember(reason: str, *, resolved: tuple[str, str] | None = None, **added: str) -> Call:
    """Update the working memory: resolve an item of a field, and add an item to each of these fields."""
    items = [{"op": "resolve", "field": resolved[0], "item": resolved[1]}] if resolved else []
    items += [{"op": "add", "field": field, "item": item} for field, item in added.items()]
    return Call(tool="update_working_memory", arguments={"reason": reason, "operations": items})


def expand(about: str, pattern: str) -> Call:
    """Retrieve the matching lines of the newest shortened output of a call that mentions `about`."""
    return Call(tool="expand_clip", arguments={"about": about, "grep": pattern})
