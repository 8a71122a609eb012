"""How a client's history differs from the stored one, and which messages the prompt then has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compaction.histories import (
    Change,
    Comparison,
    compare,
    discards_answer,
    keeps_last_exchange,
    last_answer_end,
    leading_system,
)
from compaction.identity import REASONING, message_hashes

JSON = dict[str, Any]

KEY = b"of a project"
LONG = "The pool is closed by the first of the two workers, and the second one waits for it."


def user(text: str) -> JSON:
    return {"role": "user", "content": text}


def answer(text: str) -> JSON:
    return {"role": "assistant", "content": text}


def reasoning(text: str) -> JSON:
    return {"type": "reasoning", "encrypted_content": text}


def hashes(messages: Sequence[JSON], after: int = 0) -> list[bytes]:
    return message_hashes(messages, key=KEY, after=after)


def compared(stored: Sequence[JSON], sent: Sequence[JSON], **options: Any) -> Comparison:
    return compare(hashes(stored), hashes(sent), sent, **options)


def conversation(turns: int) -> list[JSON]:
    return [each for n in range(turns) for each in (user(f"Question {n}"), answer(f"{LONG} {n}"))]


def continued(stored: Sequence[Any], sent: Sequence[Any], found: Comparison) -> list[Any]:
    """Return the history that the session has, or the fork of it, once `found` is recorded."""
    match found.change:
        case Change.EXTENDED | Change.EDITED:
            return [*stored, *sent[found.new :]]
        case Change.OMITTED:
            return [*(each for each in stored if each != REASONING), *sent[found.new :]]
        case Change.REPLACED | Change.TRIMMED:
            return [*stored[: found.common], *stored[found.kept :], *sent[found.new :]]
        case _:
            return [*stored[: found.common], *sent[found.new :]]


#: Few different messages, so that histories often have equal parts.
messages = st.sampled_from(
    [user("a"), user("b"), answer("c"), answer("d"), reasoning("e"), {"role": "system", "content": "f"}]
)
some = st.lists(messages, max_size=8)


@given(stored=some, dropped=some, following=some, answers=st.integers(0, 2), start=st.integers(0, 8))
@example(stored=conversation(2), dropped=[user("now")], following=[user("next")], answers=0, start=2)
def test_what_is_recorded_is_what_the_client_sent(
    stored: list[JSON], dropped: list[JSON], following: list[JSON], answers: int, start: int
) -> None:
    sent = [*stored[:start], *following]
    stored = [*stored[:start], *dropped, *stored[start:]]
    answers = min(answers, len(following))
    found = compared(stored, sent, answers=answers)
    before, after = hashes(stored), hashes(sent)
    assert before[: found.common] == after[: found.common] or found.change is Change.OMITTED
    recorded = continued(before, after, found)
    if found.change is Change.EDITED:
        assert len(recorded) == len(after)
        assert (
            sum(old != new for old, new in zip(recorded, after, strict=True)) * 2
            <= len(stored) - found.common
        )
    else:
        assert recorded == after


def test_the_changes_that_clients_make() -> None:
    stored = conversation(4)
    once = [user("It is noon."), user("1 file is open.")]
    edited = [*stored[:2], user("Question 1, cleared"), *stored[3:]]
    summary = user("<summary>They talked.</summary>")
    cases: list[tuple[list[JSON], list[JSON], Change]] = [
        (stored, [*stored, user("Next")], Change.EXTENDED),
        (stored, stored, Change.EXTENDED),
        (stored, [*edited, user("Next")], Change.EDITED),
        ([*stored, reasoning("x"), answer("y")], [*stored, answer("y"), user("Next")], Change.OMITTED),
        ([*stored[:7], *once, stored[7]], [*stored, user("Next")], Change.REPLACED),
        (stored, [*stored[:1], *stored[5:], user("Next")], Change.TRIMMED),
        (stored, [summary, *stored[6:]], Change.COMPACTED),
        (stored, [user("Write a title.")], Change.SIDE),
        (stored, [*stored[:4], user("Something else")], Change.DIVERGED),
        (stored, stored[:6], Change.DIVERGED),
    ]
    for before, after, change in cases:
        assert compared(before, after).change is change, change


def test_a_client_that_declares_a_compaction_needs_no_known_summary() -> None:
    stored = conversation(4)
    sent = [user("So far: a lot."), *stored[6:]]
    assert compared(stored, sent).change is not Change.COMPACTED
    assert compared(stored, sent, is_compacted=True).change is Change.COMPACTED


def test_the_response_to_another_question_does_not_make_it_an_edit() -> None:
    stored = [user("1?"), answer("Yes."), user("2?"), answer("Yes.")]
    sent = [*stored[:2], user("3?"), answer("Yes.")]
    assert compared(stored, sent, answers=1).change is Change.DIVERGED
    assert compared(stored, [*sent, user("4?")]).change is Change.EDITED


def test_a_fork_has_no_reasoning_of_the_answer_that_it_leaves() -> None:
    stored = [*conversation(3), user("Next"), reasoning("x"), answer("y")]
    found = compared(stored, [*stored[:-1], answer("z")])
    assert (found.change, found.common) == (Change.DIVERGED, len(stored) - 2)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([user("Use a tool.")], True),  # after the question
        ([], False),
        ([answer("Another answer")], False),
    ],
)
def test_an_answer_that_the_client_cannot_use(sent: list[JSON], expected: bool) -> None:
    stored = conversation(2)
    assert discards_answer(hashes(stored), 3, sent, stored_answers=1, key=KEY) is expected
    assert not discards_answer(hashes(stored), 3, sent, stored_answers=0, key=KEY)
    assert not discards_answer(hashes(stored), 2, sent, stored_answers=1, key=KEY)  # another question


def test_an_answer_whose_question_the_client_extends() -> None:
    text = {"type": "text", "text": "Question"}
    stored = hashes([user("Hi."), answer("Hi."), {"role": "user", "content": [text]}, answer("Hm.")])
    extended = {"role": "user", "content": [text, {"type": "text", "text": "Use a tool."}]}
    assert discards_answer(stored, 2, [extended], stored_answers=1, key=KEY)
    assert not discards_answer(stored, 2, [user("Use a tool.")], stored_answers=1, key=KEY)


def called(call_id: str) -> JSON:
    function = {"name": "read_file", "arguments": '{"path": "src/pool.py", "lines": 200}'}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


@pytest.mark.parametrize(
    ("last", "sent", "expected"),
    [
        (answer(LONG), [user("Rewritten"), user("Last"), answer(LONG)], True),
        (answer(LONG), [user("Rewritten"), answer(LONG)], False),  # the same answer to another question
        (answer(LONG), [user("Rewritten"), user("Last")], False),
        (answer("Yes."), [user("Rewritten"), user("Last"), answer("Yes.")], False),
        (called("call_Zk3hG8vQ"), [user("Rewritten"), called("call_Zk3hG8vQ")], True),
        (called("functions.read:0"), [user("Rewritten"), called("functions.read:0")], False),
        (called("functions.read:0"), [user("Last"), called("functions.read:0")], True),
    ],
)
def test_a_rewritten_history_that_keeps_the_last_exchange(
    last: JSON, sent: list[JSON], expected: bool
) -> None:
    stored = hashes([user("First"), answer("Hi."), user("Last"), last])
    found = keeps_last_exchange(stored, hashes(sent, after=1), 0, sent, stored_answers=1)
    assert found is expected


@given(history=some)
def test_the_parts_of_a_history(history: list[JSON]) -> None:
    leading, end = leading_system(history), last_answer_end(history)
    assert all(message.get("role") == "system" for message in history[:leading])
    assert all(message.get("role") != "system" for message in history[leading : leading + 1])
    is_of_model = [message.get("role") == "assistant" or "type" in message for message in history]
    assert not any(is_of_model[end:])
    assert all(is_of_model[max(end - 1, 0) : end])
