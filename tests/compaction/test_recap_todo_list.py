"""A recap lists the steps of the agent's to-do list that are not done."""

from __future__ import annotations

import pytest

from compaction.messages import JSON
from compaction.recap import Status, extract
from tests.compaction.recaps import COUNTER, Transcript, recap_of

STATUSES = ("completed", "in_progress", "pending")
TEXTS = ("Read the pool", "Evict idle connections", "Run the tests")
#: The calls with which agents write their list.
CALLS: list[tuple[str, dict[str, JSON]]] = [
    (
        "TodoWrite",
        {
            "todos": [
                {"content": text, "status": status, "activeForm": "…"}
                for text, status in zip(TEXTS, STATUSES, strict=True)
            ]
        },
    ),
    (
        "update_plan",
        {
            "explanation": "Next step.",
            "plan": [{"step": text, "status": status} for text, status in zip(TEXTS, STATUSES, strict=True)],
        },
    ),
    (
        "manage_todo_list",
        {
            "operation": "write",
            "todoList": [
                {"id": number, "title": text, "description": "…", "status": status}
                for number, (text, status) in enumerate(zip(TEXTS, STATUSES, strict=True))
            ],
        },
    ),
]
OPEN = ["to do: Evict idle connections: in_progress t2", "to do: Run the tests: pending t2"]


def started() -> Transcript:
    return Transcript().user("Make the pool evict idle connections").calls("Read", "…", file_path="pool.py")


def tasks() -> Transcript:
    """Return a session in which Claude Code has done one of two tasks and works on the other."""
    transcript = started()
    for number, text in enumerate(TEXTS[:2], 1):
        created = f"Task #{number} created successfully: {text}"
        transcript.calls("TaskCreate", created, subject=text, description="…")
    transcript.calls("TaskUpdate", "Updated task #1 status", taskId="1", status="completed")
    return transcript.calls("TaskUpdate", "Updated task #2 status", taskId="2", status="in_progress")


def steps_of(transcript: Transcript, **options) -> list[str]:
    items = [item for item in recap_of(transcript, **options).open_items if item.text.startswith("to do")]
    assert all(item.status is Status.OPEN for item in items)
    return [item.render().removeprefix("- [open] ") for item in items]


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_a_recap_lists_the_steps_of_the_newest_list(tool: str, arguments: dict[str, JSON]) -> None:
    transcript = started().calls(tool, "Saved.", **arguments)
    assert steps_of(transcript) == OPEN
    assert recap_of(transcript).facts == ()
    done = [{"content": text, "status": "completed"} for text in TEXTS]
    assert steps_of(transcript.calls("TodoWrite", "Saved.", todos=done)) == []
    assert (
        steps_of(started().calls(tool, "Saved.", **arguments).calls("todo_write", "Saved.", todos=[])) == []
    )


@pytest.mark.parametrize(
    ("text", "is_error"),
    [
        ("<tool_use_error>InputValidationError: todos[0].status is invalid</tool_use_error>", True),
        ("failed to parse function arguments: missing field `status`", None),
    ],
)
@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_a_call_that_failed_does_not_change_the_list(
    tool: str, arguments: dict[str, JSON], text: str, is_error: bool | None
) -> None:
    written = started().calls(tool, "Saved.", **arguments)
    rejected = started().calls(tool, "Saved.", **arguments)
    rejected.calls("TodoWrite", text, is_error=is_error, todos=[{"content": "Else", "status": "pending"}])
    assert steps_of(rejected) == OPEN
    assert steps_of(written, later=rejected.messages[5:]) == OPEN
    failed = tasks().calls("TaskUpdate", text, is_error=is_error, taskId="2", status="completed")
    assert steps_of(failed) == steps_of(tasks())


def test_a_write_may_contain_only_the_steps_that_change() -> None:
    todos = [{"id": str(number), "content": text, "status": "pending"} for number, text in enumerate(TEXTS)]
    transcript = started().calls("todo_write", "Saved.", merge=False, todos=todos)
    changed = [{"id": "0", "status": "completed"}, {"id": "1", "status": "in_progress"}]
    transcript.calls("todo_write", "Saved.", merge=True, todos=changed)
    steps = ["to do: Evict idle connections: in_progress t3", "to do: Run the tests: pending t2"]
    assert steps_of(transcript) == steps
    written = started().calls("todo_write", "Saved.", merge=False, todos=todos)
    assert steps_of(written, later=transcript.messages[5:]) == steps


def test_a_long_list_displaces_no_request() -> None:
    todos = [{"content": f"{number} " + "step " * 30, "status": "pending"} for number in range(12)]
    transcript = started().calls("TodoWrite", "Saved.", todos=todos)
    texts = [item.text for item in recap_of(transcript, cap=400).open_items]
    assert texts[0] == "user t0: Make the pool evict idle connections"
    assert texts[1].startswith("to do: 0 step")


def test_the_list_is_kept_until_a_later_recap_replaces_it() -> None:
    transcript = started().calls("TodoWrite", "Saved.", **CALLS[0][1])
    first = recap_of(transcript)
    later = transcript.user("Thanks, go on.").says("Now I run the tests.").messages[5:]
    second = extract(later, counter=COUNTER, cap_tokens=1_000, previous=first)
    assert [item.text for item in second.open_items if item.text.startswith("to do")] == [
        "to do: Evict idle connections",
        "to do: Run the tests",
    ]


def test_tasks_are_listed_by_number_instead_of_as_commands() -> None:
    assert steps_of(tasks()) == ["to do #2: Evict idle connections: in_progress t5"]
    assert recap_of(tasks()).facts == ()
    first = recap_of(tasks())
    later = (
        tasks().calls("TaskUpdate", "Updated task #2 status", taskId="2", status="completed").messages[11:]
    )
    second = extract(later, counter=COUNTER, cap_tokens=1_000, previous=first)
    assert not any(item.text.startswith("to do") for item in second.open_items)


def test_the_list_is_that_of_the_messages_that_the_prompt_still_shows() -> None:
    finished = tasks().calls("TaskUpdate", "Updated task #2 status", taskId="2", status="completed")
    assert steps_of(tasks(), later=finished.messages[11:]) == []
    written = started().calls("TodoWrite", "Saved.", **CALLS[0][1])
    assert steps_of(written, later=written.messages[3:]) == []


def test_other_calls_with_a_status_are_listed_as_calls() -> None:
    orders = [{"id": "W1", "status": "pending", "note": "x"}]
    transcript = started().calls("update_orders", "Saved.", customer="c7", orders=orders)
    assert steps_of(transcript) == []
    assert [item.text for item in recap_of(transcript).facts] == ["`update_orders c7`"]


@pytest.mark.parametrize("start", [tasks(), started().calls("TodoWrite", "Saved.", **CALLS[0][1])])
def test_a_list_that_the_agent_leaves_unchanged_during_later_requests_is_abandoned(start: Transcript) -> None:
    steps = steps_of(start)
    start.user("Thanks. What is a pool?").says("It keeps connections.")
    assert steps_of(start) == steps
    first = recap_of(start)
    later = start.user("Rename the class.").calls("Bash", "", command="sed -i s/Pool/Set/ pool.py")
    assert steps_of(later) == steps
    later.says("Renamed.")
    assert steps_of(later) == []
    second = extract(later.messages[-4:], counter=COUNTER, cap_tokens=1_000, previous=first)
    assert not any(item.text.startswith("to do") for item in second.open_items)


def test_a_list_whose_steps_the_agent_completes_one_by_one_is_not_abandoned() -> None:
    created = "Task #3 created successfully: Run the tests"
    transcript = tasks().calls("TaskCreate", created, subject="Run the tests").user("Go on.").says("I will.")
    transcript.calls("TaskUpdate", "Updated task #2 status", taskId="2", status="completed")
    transcript.user("And?").says("The tests are next.")
    assert steps_of(transcript) == ["to do #3: Run the tests: pending t6"]
