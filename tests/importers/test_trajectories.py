"""The importers on real transcripts, compared with independently counted figures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from importers.base import Damage, ImportedSession
from importers.reading import log_sources
from importers.registry import recognize
from tests.importers.pairing import calls, misplaced, results

pytestmark = pytest.mark.trajectories

#: Folders with supported formats, and the numbers of sessions and tool calls in their README.
KNOWN = {
    "entire-claude-code": ("claude-code", 54, 5947),
    "pi-coding-agent": ("pi", 2, 580),
    "openhands-completions": ("openhands", 22, 361),
    "mini-swe-agent": ("mini-swe-agent", 28, 2686),
    "tau-bench": ("tau-bench", 200, 1164),
    "tau2-bench": ("tau2-bench", 100, 1218),
    "entire-gemini-cli": ("gemini-cli", 2, 3),
    "gemini-cli-history": ("gemini-cli", 2, 95),
    "openhands-events": ("openhands-events", 2, 24),
    "swe-agent": ("swe-agent", 10, 40),
}


def read(folder: Path) -> Iterator[tuple[str, ImportedSession | Damage]]:
    for source in log_sources([folder]):
        log = source.read()
        importer = recognize(log)
        if importer:
            yield from ((importer.name, item) for item in importer.read(log))


@pytest.fixture(scope="module")
def imported(trajectories: Path) -> dict[str, list[ImportedSession]]:
    sessions: dict[str, list[ImportedSession]] = {}
    for folder, (format, _, _) in KNOWN.items():
        items = list(read(trajectories / folder))
        assert {name for name, _ in items} == {format}
        assert not [item for _, item in items if isinstance(item, Damage)]
        sessions[folder] = [item for _, item in items if isinstance(item, ImportedSession)]
    return sessions


@pytest.mark.parametrize("folder", KNOWN)
def test_the_numbers_of_sessions_and_tool_calls_match_the_readme(
    folder: str, imported: dict[str, list[ImportedSession]]
) -> None:
    _, sessions, tool_calls = KNOWN[folder]
    assert len(imported[folder]) == sessions
    assert sum(len(calls(session)) for session in imported[folder]) == tool_calls


@pytest.mark.parametrize("folder", KNOWN)
def test_results_directly_follow_their_calls(folder: str, imported: dict[str, list[ImportedSession]]) -> None:
    for session in imported[folder]:
        named = set(calls(session))
        for complaint in misplaced(session):
            # One exported Claude Code log begins in the middle: its first line is a result.
            assert complaint.split()[2] not in named, f"{session.external_id}: {complaint}"


def test_everything_else_is_not_recognized_or_reads_without_a_crash(trajectories: Path) -> None:
    formats = Counter(name for name, _ in read(trajectories))
    assert set(formats) == {format for format, _, _ in KNOWN.values()}


def test_claude_code_messages_and_prompt_sizes_are_those_of_the_log(trajectories: Path) -> None:
    manifest = json.loads((trajectories / "MANIFEST.json").read_text())["files"]
    counted = {entry["file"]: entry for entry in manifest if entry["source"] == "entire-claude-code"}
    for source in log_sources([trajectories / "entire-claude-code"]):
        file = source.files[0].relative_to(trajectories).as_posix()
        log = source.read()
        lines = [json.loads(line) for line in log.data.splitlines() if _is_one_object(line)]
        importer = recognize(log)
        assert importer is not None
        (session,) = [item for item in importer.read(log) if isinstance(item, ImportedSession)]
        # The manifest counts each result line. API errors were never sent, so they are not messages here.
        merged = len(results(session)) - _messages_with_results(session)
        messages = sum(len(turn.messages) for turn in session.turns) + merged + _api_errors(lines)
        assert messages == counted[file]["messages"], file
        assert len(calls(session)) == counted[file]["tool_calls"], file
        compactions = sum(turn.client_compaction is not None for turn in session.turns)
        assert compactions == counted[file].get("native_compactions", 0), file
        sizes = {turn.response_id: turn.usage.prompt_tokens for turn in session.turns if turn.usage}
        assert sizes == _reported(lines), file


def _is_one_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _messages_with_results(session: ImportedSession) -> int:
    contents = [m.body["content"] for turn in session.turns for m in turn.messages]
    return sum(
        any(block.get("type") == "tool_result" for block in content)
        for content in contents
        if isinstance(content, list)
    )


def _api_errors(lines: list[dict[str, Any]]) -> int:
    return sum(bool(line.get("isApiErrorMessage")) for line in lines)


def _reported(lines: list[dict[str, Any]]) -> dict[str, int]:
    """Return the prompt size of each response, from its line with the most output."""
    usages: dict[str, dict[str, Any]] = {}
    for line in lines:
        if line["type"] != "assistant" or line["message"]["model"] == "<synthetic>":
            continue
        usage = line["message"]["usage"]
        known = usages.get(line["message"]["id"])
        if known is None or usage["output_tokens"] >= known["output_tokens"]:
            usages[line["message"]["id"]] = usage
    parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return {id: sum(usage[part] for part in parts) for id, usage in usages.items()}
