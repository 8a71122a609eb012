"""Claude Code logs: merged responses, forks, sub-agents, compactions, damage."""

from __future__ import annotations

import random
import time
from typing import Any

import orjson
import pytest

from importers.base import LogFile
from importers.jsonlines import Record, records
from importers.registry import recognize
from sessions.services.samples.claude_code import sample_log
from tests.importers.logs import SESSION, block, jsonl, read, result, text, tool_use, user
from tests.importers.pairing import bodies, calls, misplaced, results

PARALLEL = (
    user("Fix the clock", "u1"),
    block("m1", text("Reading."), "a1", output=5),
    block("m1", tool_use("c1"), "a2", output=9),
    result("c1", "one", "r1"),
    block("m1", tool_use("c2"), "a3", output=7),
    user("And hurry", "u2"),
    result("c2", "two", "r2"),
    block("m2", text("Done."), "a4"),
)


def test_a_response_is_merged_and_its_results_follow_it() -> None:
    (session,), damages = read(jsonl(*PARALLEL), "claude-code")
    assert not damages
    assert [body["role"] for body in bodies(session)] == ["user", "assistant", "user", "user", "assistant"]
    assert [b["type"] for b in bodies(session)[1]["content"]] == ["text", "tool_use", "tool_use"]
    assert results(session) == calls(session) == ["c1", "c2"]
    assert not list(misplaced(session))
    assert session.title == "Fix the clock"


def test_a_log_may_begin_with_many_settings() -> None:
    """A resumed session writes them again, in this order, before its first message."""
    settings = (
        {"type": "custom-title", "customTitle": "Clock", "sessionId": SESSION},
        {"type": "agent-name", "agentName": "clock", "sessionId": SESSION},
        {"type": "last-prompt", "lastPrompt": "Fix the clock", "sessionId": SESSION},
        {"type": "mode", "mode": "normal", "sessionId": SESSION},
        {"type": "permission-mode", "permissionMode": "default", "sessionId": SESSION},
    )
    (session,), damages = read(jsonl(*settings, *PARALLEL), "claude-code")
    assert (session.title, len(session.turns), damages) == ("Clock", 2, [])


def test_the_usage_with_the_most_output_is_used() -> None:
    (session,), _ = read(jsonl(*PARALLEL), "claude-code")
    usage = session.turns[0].usage
    assert usage is not None
    assert (usage.output_tokens, usage.prompt_tokens) == (9, 543)
    assert (usage.uncached_tokens, usage.cache_write_tokens, usage.cache_read_tokens) == (3, 40, 500)


def test_lines_that_a_fork_copied_count_once() -> None:
    once, _ = read(jsonl(*PARALLEL), "claude-code")
    twice, _ = read(jsonl(*PARALLEL, *PARALLEL), "claude-code")
    assert once == twice


def test_a_grown_log_begins_with_the_same_turns() -> None:
    (before,), _ = read(jsonl(*PARALLEL), "claude-code")
    (after,), _ = read(jsonl(*PARALLEL, user("Thanks", "u3"), block("m3", text("Bye"), "a5")), "claude-code")
    assert tuple(after.turns)[: len(before.turns)] == before.turns
    assert len(after.turns) == len(before.turns) + 1


def test_client_lines_are_input_but_not_typed_by_the_user() -> None:
    log = jsonl(
        user("<local-command-stdout>ok</local-command-stdout>", "u0"),
        user("<system-reminder>be brief</system-reminder>", "u1"),
        user([text("[Request interrupted by user]")], "u2"),
        user("caveat", "u3", isMeta=True),
        user("Now the real thing", "u4"),
        block("m1", text("Yes"), "a1"),
    )
    (session,), _ = read(log, "claude-code")
    assert [m.is_meta for m in session.turns[0].messages] == [True, True, True, True, False, False]
    assert session.title == "Now the real thing"


def attachment(words: str, uuid: str, role: str) -> dict[str, Any]:
    """Return a line with what the client added to the conversation, and the text that it sent."""
    sent = {"rendered": [{"content": f"<system-reminder>\n{words}\n</system-reminder>"}]}
    given = {"attachment": {"type": "skill_listing"}, "renderedRole": role, "sessionId": SESSION}
    return {"type": "attachment", "uuid": uuid} | sent | given


def test_attachments_are_input_and_system_messages_precede_the_answer() -> None:
    unsent = {"type": "attachment", "uuid": "t0", "sessionId": SESSION, "attachment": {"type": "date"}}
    lines = [
        user("Fix the clock", "u1"),
        unsent,
        attachment("Skills: tests", "t1", "system"),
        attachment("Today is Monday", "t2", "system"),
        attachment("Be brief", "t3", "user"),
        block("m1", tool_use("c1"), "a1"),
        attachment("A task is done", "t4", "system"),
        result("c1", "one", "r1"),
        block("m2", text("Done."), "a2"),
    ]
    (session,), damages = read(jsonl(*lines, *lines), "claude-code")
    assert not damages
    reminder = text("<system-reminder>\nBe brief\n</system-reminder>")
    assert [body for body in bodies(session) if body["role"] != "assistant"] == [
        {"role": "user", "content": "Fix the clock"},
        {"role": "user", "content": [reminder]},
        {"role": "system", "content": "Skills: tests\n\nToday is Monday"},
        result("c1", "one", "r1")["message"],
        {"role": "system", "content": "A task is done"},
    ]
    assert [m.is_meta for m in session.turns[0].messages] == [False, True, True, False]
    (part,), _ = read(jsonl(*lines[:4]), "claude-code")  # the log grows between two attachments
    assert [m.source_id for m in part.turns[0].messages] == ["u1", "t1"]
    assert session.title == "Fix the clock"


def test_a_compaction_marks_the_following_turn() -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "s1", "sessionId": SESSION}
    facts = {"compactMetadata": {"trigger": "auto", "preTokens": 155_000}}
    summary = user("This session continues …", "u5", isCompactSummary=True)
    log = jsonl(*PARALLEL, boundary | facts, summary, block("m9", text("Going on"), "a9"))
    (session,), _ = read(log, "claude-code")
    marker = session.turns[-1].client_compaction
    assert marker is not None
    assert (marker.trigger, marker.tokens_before) == ("auto", 155_000)
    assert session.turns[-1].messages[0].is_summary


def test_sub_agents_are_child_sessions() -> None:
    log = jsonl(
        *PARALLEL,
        user("Search for it", "s1", isSidechain=True, agentId="ab12"),
        block("m8", text("Found"), "s2", isSidechain=True, agentId="ab12"),
        user("Old style", "s3", isSidechain=True, parentUuid=None),
        block("m9", text("Found too"), "s4", isSidechain=True, parentUuid="s3"),
    )
    (main, child, old), _ = read(log, "claude-code")
    assert (main.external_id, main.parent_external_id) == (SESSION, None)
    assert (child.external_id, child.parent_external_id) == (f"{SESSION}:agent-ab12", SESSION)
    assert len(bodies(old)) == 2


def test_damaged_lines_are_reported_and_the_rest_is_imported() -> None:
    whole = jsonl(*PARALLEL).data
    data = (
        b"\xef\xbb\xbf"
        + whole
        + b"\x00\x00\x00\n[1]\n"
        + b'{"type":"user","uuid":"x","message":7}\n{"type":"us'
    )
    sessions, damages = read(LogFile(name=f"{SESSION}.jsonl", data=data), "claude-code")
    assert [damage.line for damage in damages] == [10, 11, 12]
    assert sessions == read(jsonl(*PARALLEL), "claude-code")[0]


def test_two_records_on_one_line_and_bytes_that_are_not_utf8() -> None:
    lines = jsonl(*PARALLEL).data.splitlines()
    joined = b"\n".join([lines[0] + lines[1], *lines[2:]])
    assert (
        read(LogFile(name=f"{SESSION}.jsonl", data=joined), "claude-code")[0]
        == read(jsonl(*PARALLEL), "claude-code")[0]
    )
    broken = joined.replace(b"hurry", b"hur\xffry")
    sessions, damages = read(LogFile(name=f"{SESSION}.jsonl", data=broken), "claude-code")
    assert len(damages) == 1
    assert "hur\ufffdry" in str(bodies(sessions[0]))


@pytest.mark.slow
def test_many_records_on_one_line_are_read_in_linear_time() -> None:
    log = LogFile(name="log.jsonl", data=orjson.dumps({"text": "-" * 200}) * 50_000)
    started = time.process_time()
    assert sum(isinstance(record, Record) for record in records(log)) == 50_000
    assert time.process_time() - started < 5


@pytest.mark.slow
def test_no_damage_of_any_kind_raises() -> None:
    chance = random.Random(7)
    whole = bytearray(jsonl(*PARALLEL).data)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 12)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        log = LogFile(name="log.jsonl", data=bytes(data[: chance.randrange(len(data))]))
        importer = recognize(log)
        if importer:
            list(importer.read(log))


def test_the_sample_is_read_without_damage() -> None:
    (session,), damages = read(sample_log(), "claude-code")
    assert not damages
    assert not list(misplaced(session))
    assert 45 <= len(session.turns) <= 60
    assert sum(turn.client_compaction is not None for turn in session.turns) == 1
    assert sorted(calls(session)) == sorted(results(session))


def test_the_sample_is_deterministic() -> None:
    assert sample_log().data == sample_log().data


def test_iterations_are_billed_together_and_the_last_message_is_the_prompt() -> None:
    message = {"type": "message", "input_tokens": 3, "cache_read_input_tokens": 500, "output_tokens": 5}
    compaction = {"type": "compaction", "input_tokens": 9_000, "output_tokens": 70}
    line = block("m1", text("Done."), "a1")
    line["message"]["usage"] = {**message, "iterations": [compaction, message, {"input_tokens": "none"}]}
    (session,), _ = read(jsonl(user("Fix the clock", "u1"), line), "claude-code")
    usage = session.turns[0].usage
    assert usage is not None
    assert tuple(usage.counts.values()) == (9_003, 500, 0, 75)
    assert usage.prompt_tokens == 0  # the last iteration has no plausible count
    line["message"]["usage"]["iterations"].pop()
    (session,), _ = read(jsonl(user("Fix the clock", "u1"), line), "claude-code")
    assert session.turns[0].usage is not None
    assert session.turns[0].usage.prompt_tokens == 503
