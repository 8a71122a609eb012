"""A recap lists the requests of the user, each with its status."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.recap import Status, extract
from tests.compaction.recaps import COUNTER, Transcript, recap_of, worked_session


def test_text_that_the_agent_inserted_is_not_a_request() -> None:
    reminder = "<system-reminder>\nThe file pool.py was changed.\n</system-reminder>"
    output = "<local-command-stdout>Goodbye!</local-command-stdout>"
    command = (
        "<command-name>/exit</command-name>\n<command-message>exit</command-message>"
        "\n<command-args></command-args>"
    )
    done = "<task-notification>\nThe build has ended.\n</task-notification>"
    done += "\nFull transcript available at: /tmp/tasks/b1.output"
    talk = Transcript().user("Fix the pool.").user(reminder).user(output).user(command).user(done)
    talk.user(f"{reminder}\nAlso test it.")
    requests = [item.text for item in recap_of(talk).open_items]
    assert requests == ["user t0: Fix the pool.", "user t0: Also test it."]


def test_a_recap_keeps_every_request_verbatim() -> None:
    transcript = worked_session().says("Done.").user("Now document it")
    first, second = recap_of(transcript).open_items
    assert first.text.endswith("Make the pool evict idle connections, and never touch tests/legacy.py")
    assert (first.status, second.status) == (Status.DONE, Status.OPEN)


def test_the_latest_answer_is_kept_because_the_next_request_may_refer_to_it() -> None:
    offer = f"1. Move it to session/. {'It is the natural place. ' * 90}2. Keep it. Shall I do option 1?"
    talk = Transcript().user("Is paths/ right?").calls("Read", "x = 1", path="paths/a.py").says("No.")
    talk.user("Where should it be?").says(offer)
    (earlier, latest) = recap_of(talk).open_items
    assert earlier.notes == ()
    assert latest.text == "user t2: Where should it be?"
    assert latest.notes[0].startswith("answered t3: 1. Move it to session/. It is")
    assert latest.notes[0].endswith("Shall I do option 1?")
    assert len(latest.notes[0]) < 400
    messages = talk.user("Yes, option 1.").calls("Read", "y = 2", path="b.py").messages
    first = extract(messages[:6], counter=COUNTER, cap_tokens=1_000)
    both = extract(messages[6:], counter=COUNTER, cap_tokens=1_000, previous=first)
    assert [item.notes for item in both.open_items] == [(), latest.notes, ()]


def test_a_huge_request_is_clipped_and_displaces_no_other() -> None:
    transcript = Transcript().user("start " + "word " * 5_000).user("keep this: port 5433")
    texts = [item.text for item in recap_of(transcript, cap=300).open_items]
    assert texts[0].startswith("user t0: start word")
    assert texts[0].endswith("…")
    assert texts[1].endswith("keep this: port 5433")


@pytest.mark.parametrize(
    "output",
    [
        "OBSERVATION:\n3 passed",
        "Observation: 3 passed",
        "<returncode>0</returncode>\n<output>\n3 passed\n</output>",
        "EXECUTION RESULT of [execute_bash]:\n3 passed",
        "[execute_command for 'pytest'] Result:\n3 passed",
        "3 passed\n\n(Open file: src/pool.py)\n(Current directory: /work)\nbash-$",
    ],
)
def test_output_that_an_agent_sends_as_a_user_message_is_no_request(output: str) -> None:
    """The agent calls no tools: it writes commands in its text, which therefore completes no request."""
    talk = Transcript().user("Repair the pool.\n\n(Current directory: /work)\nbash-$")
    for _ in range(2):
        talk.says("I run the tests.\n```\npytest src/pool.py\n```").user(output)
    [request] = recap_of(talk.says("Now I submit.\n```\nsubmit\n```")).open_items
    assert request.text.startswith("user t0: Repair the pool.")
    assert request.status is Status.OPEN
    assert request.notes == ()


def test_a_request_ends_the_calls_in_the_text_of_an_agent() -> None:
    """A note of the user that looks like the output of a command does not keep all requests open."""
    talk = Transcript().user("Repair the pool.").says("Done.").user("Observation: it still leaks.")
    talk.says("Repaired.").user("Document it.").says("Documented.")
    assert [item.status for item in recap_of(talk).open_items][1:] == [Status.DONE]
    talk = Transcript().user("Repair the pool.").calls("Read", "x = 1", path="a.py").says("Done.")
    requests = recap_of(talk.user("Observation: it still leaks.")).open_items
    assert [(item.text, item.status) for item in requests] == [
        ("user t0: Repair the pool.", Status.DONE),
        ("user t2: Observation: it still leaks.", Status.OPEN),
    ]


@pytest.mark.parametrize(
    ("messages", "listed"),
    [
        (
            ["Test both of the pools.", "[Request interrupted by user]", "Test all of the pools."],
            ["Test all of the pools."],
        ),
        (["Remove the tests.", "Remove the useless tests."], ["Remove the useless tests."]),
        (["Also test a.py.", "Also test b.py."], ["Also test a.py.", "Also test b.py."]),
        (["a.py", "also test b.py"], ["a.py", "also test b.py"]),
        (["Run it.", "[Request interrupted by user]", "Why so slow?"], ["Run it.", "Why so slow?"]),
    ],
)
def test_a_request_that_the_user_corrected_is_listed_once(messages: list[str], listed: list[str]) -> None:
    talk = worked_session().says("Done.")
    for text in messages:
        talk.user(text)
    assert [item.text.partition(": ")[2] for item in recap_of(talk).open_items][1:] == listed


def test_a_request_is_repeated_and_corrected_in_the_same_turn_as_its_answer() -> None:
    """An agent that writes its calls in its text sends several messages as one turn."""
    talk = Transcript().user("Test it.").says("Running.").user("Test it.").user("Test it all.")
    messages = [replace(message, turn=1) for message in talk.user("Observation: 3 passed").messages]
    [request] = extract(messages, counter=COUNTER, cap_tokens=1_000).open_items
    assert (request.text, request.status) == ("user t1: Test it all.", Status.OPEN)


def test_the_summary_of_a_client_is_not_a_request() -> None:
    talk = Transcript().user("Fix the pool.").calls("Read", "x = 1", path="a.py")
    talk.user(
        "This session is being continued from a previous conversation that ran out of context. Analysis:"
    )
    [request] = recap_of(talk.says("All tests pass.")).open_items
    assert (request.text, request.status) == ("user t0: Fix the pool.", Status.DONE)
