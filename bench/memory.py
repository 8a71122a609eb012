"""Measure the coverage of automatic memory updates on recorded sessions, without a model.

    python -m bench.memory <transcripts>

Processes each session turn by turn with `compaction.memory.updates`, as a worker would, and compares the
result with the events of the session, which are determined here independently of that code.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from bench.transcripts import Transcript, transcripts
from compaction.adapters.tiktoken_counter import TiktokenCounter
from compaction.identifiers.extract import argument_text
from compaction.memory.origins import Notes
from compaction.memory.updates import UpdaterState, update_notes
from compaction.memory.values import ASKED_TOKENS, MAX_TOKENS
from compaction.messages import Message, ToolCall
from compaction.tools.actions import Kind, action_of
from compaction.tools.outcomes import is_error
from compaction.tools.paths import known_path

_FAILED_TEST = re.compile(r"^(?:FAILED (\S+::\S+)|\s*--- FAIL: (\S+))", re.MULTILINE)
_PASSED_TEST = re.compile(r"^(?:(\S+::\S+) PASSED|\s*--- PASS: (\S+))", re.MULTILINE)


@dataclass(slots=True)
class Figures:
    """Counts over the sessions of one folder."""

    counts: Counter[str] = field(default_factory=Counter)
    sizes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Run:
    """One session with its working memory before and after each turn."""

    transcript: Transcript
    before: dict[int, Notes] = field(default_factory=dict)
    after: dict[int, Notes] = field(default_factory=dict)


def measure(folder: Path) -> Figures:
    figures = Figures()
    for transcript in transcripts(folder):
        run = _kept(transcript, figures)
        _count_files(run, figures.counts)
        _count_edits(run, figures.counts)
        _count_tests(run, figures.counts)
    return figures


def _kept(transcript: Transcript, figures: Figures) -> Run:
    counter, run = TiktokenCounter(), Run(transcript)
    notes, state = Notes(), UpdaterState()
    figures.counts["sessions"] += 1
    for turn, messages in _turns(transcript.messages):
        run.before[turn] = notes
        started = time.perf_counter()
        kept = update_notes(notes, state, messages, counter=counter)
        figures.seconds.append(time.perf_counter() - started)
        notes, state = kept.notes, UpdaterState.from_json(kept.state.to_json())
        run.after[turn] = notes
        figures.counts["revisions"] += bool(kept.reason)
        figures.sizes.append(counter.count(notes.render()))
    return run


def _turns(messages: Sequence[Message]) -> Iterator[tuple[int, list[Message]]]:
    for turn, group in groupby(messages, key=lambda message: message.turn):
        yield turn, list(group)


def _calls(transcript: Transcript) -> Iterator[tuple[int, int, ToolCall, str, bool]]:
    """Yield the turns of call and result, the call, the text of the result, and whether it succeeded."""
    results = {
        part.call_id: (message, part) for message in transcript.messages for part in message.tool_results
    }
    for message in transcript.messages:
        for call in message.tool_calls:
            if found := results.get(call.call_id):
                shows = action_of(call).kind is Kind.READ
                yield (
                    message.turn,
                    found[0].turn,
                    call,
                    found[1].text,
                    not is_error(found[1], shows_file=shows),
                )


def _count_files(run: Run, counts: Counter[str]) -> None:
    """Count edited files that the memory listed before their last edit."""
    last: dict[str, int] = {}
    touched: dict[str, int] = {}
    for turn, _, call, _, worked in _calls(run.transcript):
        action = action_of(call)
        if action.path and worked:
            touched.setdefault(action.path, turn)
            if action.kind in (Kind.EDIT, Kind.WRITE):
                last[action.path] = turn
    for path, turn in last.items():
        files = run.before[turn].memory.important_files
        listed = known_path(path, files) in files
        counts["edited files"] += 1
        counts["edited files listed"] += listed
        if touched[path] < turn:
            counts["files touched before"] += 1
            counts["files touched before listed"] += listed


def _count_edits(run: Run, counts: Counter[str]) -> None:
    """Count turns with edits after which `recent_edits` contains the diff of the last edit.

    Compares the text line by line.
    """
    edits = {
        turn: call
        for _, turn, call, _, worked in _calls(run.transcript)
        if worked and action_of(call).kind in (Kind.EDIT, Kind.WRITE)
    }
    for turn, call in edits.items():
        shown = "\n".join(run.after[turn].memory.recent_edits)
        counts["edits"] += 1
        verdict = _is_diff_of(shown, call)
        counts["edits exact"] += verdict == "exact"
        counts["edits clipped"] += verdict == "clipped"


def _is_diff_of(shown: str, call: ToolCall) -> str:
    path, _, body = shown.partition("\n")
    if path != action_of(call).path:
        return "other"
    said = argument_text(call.arguments)
    if not all(line[1:] in said for line in body.splitlines() if line.startswith(("+", "-"))):
        return "other"
    return "clipped" if " more lines; the call is in message " in body else "exact"


def _count_tests(run: Run, counts: Counter[str]) -> None:
    """Count failing tests that `blockers` lists after their run, and those removed once they pass."""
    failing: set[str] = set()
    for _, turn, call, text, _ in _calls(run.transcript):
        if action_of(call).kind is not Kind.COMMAND:
            continue
        failed = {one or other for one, other in _FAILED_TEST.findall(text)}
        passed = {one or other for one, other in _PASSED_TEST.findall(text)} - failed
        blockers = "\n".join(run.after[turn].memory.blockers)
        for test in failed:
            counts["failing tests"] += 1
            counts["failing tests recorded"] += test in blockers
        for test in passed & failing:
            counts["tests that pass again"] += 1
            counts["tests that left"] += (
                f"test fails: {test}:" not in f"{blockers}:" and test not in blockers.split()
            )
        failing = (failing | failed) - passed


def _report(name: str, figures: Figures) -> str:
    counts, sizes, seconds = figures.counts, sorted(figures.sizes), sorted(figures.seconds)
    lines = [f"{name}: {counts['sessions']} sessions, {len(sizes)} turns, {counts['revisions']} revisions"]
    pairs = (
        ("edited files listed", "edited files"),
        ("files touched before listed", "files touched before"),
        ("edits exact", "edits"),
        ("edits clipped", "edits"),
        ("failing tests recorded", "failing tests"),
        ("tests that left", "tests that pass again"),
    )
    for part, whole in pairs:
        share = f"{counts[part] / counts[whole]:.3f}" if counts[whole] else "–"
        lines.append(f"  {part:<28} {counts[part]:>5} of {counts[whole]:>5}  {share}")
    lines.append(
        f"  tokens: median {_at(sizes, 0.5)}, largest {sizes[-1]} (limits: {ASKED_TOKENS}, {MAX_TOKENS})"
    )
    lines.append(f"  ms per turn: median {_at(seconds, 0.5) * 1e3:.2f}, p99 {_at(seconds, 0.99) * 1e3:.2f}")
    return "\n".join(lines)


def _at(ranked: Sequence[float], share: float) -> float:
    return ranked[int(len(ranked) * share)]


def main() -> None:
    folder = Path(sys.argv[1])
    for name in sys.argv[2:] or (
        "entire-claude-code",
        "openhands-completions",
        "mini-swe-agent",
        "pi-coding-agent",
    ):
        print(_report(name, measure(folder / name)))


if __name__ == "__main__":
    main()
