"""A recap lists a command or a sub-agent in the background with the outcome that a later result reports."""

from __future__ import annotations

import pytest

from compaction.messages import JSON
from compaction.recap import extract
from tests.compaction.recaps import COUNTER, Transcript, recap_of

#: The call that starts something, and its result.
BASH = ("Bash", "Command running in background with ID: b7f2. Output is being written to: /tmp/b7f2.output")
CODEX = (
    "exec_command",
    "Chunk ID: f8\nWall time: 1.0 seconds\nProcess running with session ID 42\nOutput:\nBuilding",
)
AGENT = (
    "Task",
    "Async agent launched successfully.\nagentId: af17 (internal ID)\nIt works in the background.",
)
BUILD, REVIEW = {"command": "npm run build"}, {"description": "Review the pool"}
STARTED = {
    BASH: f'`npm run build`: started t1 "{BASH[1]}"',
    CODEX: '`npm run build`: started t1 "Process running with session ID 42"',
    AGENT: '`Task Review the pool`: started t1 "agentId: af17"',
}
POLL: dict[str, JSON] = {"session_id": 42, "chars": ""}


def task_output(task: str, status: str, output: str, code: str = "") -> str:
    return (
        f"<retrieval_status>success</retrieval_status>\n\n<task_id>{task}</task_id>\n\n<task_type>local_bash"
        f"</task_type>\n\n<status>{status}</status>\n\n{code}<output>\n{output}\n</output>"
    )


def codex(state: str, output: str) -> str:
    return f"Chunk ID: a1\nWall time: 5.0 seconds\n{state}\nOriginal token count: 9\nOutput:\n{output}\n"


#: The start, the call that requests the outcome with its result, and the item of the recap.
POLLS: list[tuple[tuple[str, str], str, dict[str, JSON], str, str]] = [
    (
        BASH,
        "BashOutput",
        {"bash_id": "b7f2"},
        "<status>failed</status>\n\n<exit_code>1</exit_code>\n\n<stdout>\nerror: no disk\n</stdout>",
        '[open] `npm run build`: failed t2 "error: no disk"',
    ),
    (
        BASH,
        "TaskOutput",
        {"task_id": "b7f2", "block": True},
        task_output("b7f2", "completed", "built in 3s", "<exit_code>0</exit_code>\n\n"),
        '`npm run build`: ok t2 "built in 3s"',
    ),
    (
        AGENT,
        "TaskOutput",
        {"task_id": "af17", "block": True},
        task_output("af17", "completed", "Error: handling is missing in two places."),
        '`Task Review the pool`: ok t2 "Error: handling is missing in two places."',
    ),
    (BASH, "TaskOutput", {"task_id": "b7f2"}, task_output("b7f2", "running", "50%"), STARTED[BASH]),
    (
        BASH,
        "KillShell",
        {"shell_id": "b7f2"},
        '{"message":"Successfully killed shell: b7f2 (npm run build)","shell_id":"b7f2"}',
        "`npm run build`: stopped t2",
    ),
    (
        CODEX,
        "write_stdin",
        POLL,
        codex("Process exited with code 1", "error: no disk"),
        '[open] `npm run build`: failed t2 "error: no disk"',
    ),
    (
        CODEX,
        "write_stdin",
        POLL,
        codex("Process exited with code 0", "built in 3s"),
        '`npm run build`: ok t2 "built in 3s"',
    ),
    (CODEX, "write_stdin", POLL, codex("Process running with session ID 42", "50%"), STARTED[CODEX]),
]


def started(start: tuple[str, str]) -> Transcript:
    tool, text = start
    return Transcript().user("Go on.").calls(tool, text, **(REVIEW if start is AGENT else BUILD))


@pytest.mark.parametrize(("start", "tool", "arguments", "text", "item"), POLLS)
def test_a_later_result_reports_the_outcome(
    start: tuple[str, str], tool: str, arguments: dict[str, JSON], text: str, item: str
) -> None:
    transcript = started(start)
    first = recap_of(transcript)
    assert [fact.render() for fact in first.facts] == [f"- {STARTED[start]}"]
    transcript.calls(tool, text, **arguments)
    assert [fact.render() for fact in recap_of(transcript).facts] == [f"- {item}"]
    next_recap = extract(transcript.messages[3:], counter=COUNTER, cap_tokens=1_000, previous=first)
    assert [fact.render() for fact in next_recap.facts] == [f"- {item}"]


@pytest.mark.parametrize(
    ("status", "summary", "outcome"),
    [
        ("completed", 'Background command "Build" completed (exit code 0)', "`npm run build`: ok t1"),
        ("failed", 'Background command "Build" failed with exit code 1', "[open] `npm run build`: failed t1"),
        ("killed", 'Background command "Build" was stopped', "`npm run build`: stopped t1"),
    ],
)
def test_a_notification_reports_the_outcome(status: str, summary: str, outcome: str) -> None:
    transcript = started(BASH).user(
        "<task-notification>\n<task-id>b7f2</task-id>\n<output-file>/tmp/b7f2.output</output-file>\n"
        f"<status>{status}</status>\n<summary>{summary}</summary>\n</task-notification>"
    )
    assert [fact.render() for fact in recap_of(transcript).facts] == [f"- {outcome}"]


def test_a_call_that_fails_itself_reports_no_outcome() -> None:
    transcript = started(BASH)
    transcript.calls("TaskOutput", "<tool_use_error>Error: No task found</tool_use_error>", task_id="b7f2")
    assert f"- {STARTED[BASH]}" in [fact.render() for fact in recap_of(transcript).facts]
    transcript = started(CODEX).calls("write_stdin", "write_stdin failed: Unknown process id 42", **POLL)
    assert f"- {STARTED[CODEX]}" in [fact.render() for fact in recap_of(transcript).facts]


def test_a_call_with_another_id_reports_no_outcome() -> None:
    transcript = started(CODEX).calls("get_order", "Refund: exit code 1", order_id=42, session_id=7)
    assert f"- {STARTED[CODEX]}" in [fact.render() for fact in recap_of(transcript).facts]
