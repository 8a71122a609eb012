"""A recap lists each command with its newest outcome."""

from __future__ import annotations

import pytest

from compaction.recap import Status
from tests.compaction.recaps import FAILURE, TESTS, recap_of, worked_session


def test_a_recap_keeps_commands_with_outcomes_and_error_lines() -> None:
    facts = {item.text: item for item in recap_of(worked_session()).facts}
    assert facts["`pytest -q`"].status is Status.OPEN
    assert facts["`pytest -q`"].notes == ('failed t4 "FAILED tests/test_pool.py"',)
    assert facts["`ruff check`"].notes == ('ok t6 "3 passed in 0.42s"',)
    assert facts["`ruff check`"].status is None


def test_a_success_replaces_the_earlier_failure_of_a_command() -> None:
    transcript = worked_session().calls("Bash", "5 passed", is_error=False, command="pytest -q")
    facts = [item for item in recap_of(transcript).facts if item.text == "`pytest -q`"]
    assert [item.notes for item in facts] == [('ok t7 "5 passed"',)]


@pytest.mark.parametrize(
    ("command", "text", "outcome"),
    [
        ("pytest -q 2>&1 | tail -5", FAILURE, 'failed t7 "FAILED tests/test_pool.py"'),
        ("pytest -q | tee log || true", FAILURE, 'failed t7 "FAILED tests/test_pool.py"'),
        ('echo "a|b"', FAILURE, 'ok t7 "FAILED tests/test_pool.py"'),
        (
            "git log | head",
            "fixed it\n[Command finished with exit code 0]\nroot@box:/src #",
            'ok t7 "fixed it"',
        ),
    ],
)
def test_the_outcome_of_a_command_is_that_of_its_first_program(command: str, text: str, outcome: str) -> None:
    recap = recap_of(worked_session().calls("Bash", text, is_error=False, command=command))
    assert recap.facts[-1].notes == (outcome,)


def test_runs_that_show_more_or_less_of_the_output_are_one_command() -> None:
    transcript = worked_session()
    for shown in ("2>&1 | tail -40", "2>&1 | head -n 5", "2>&1"):
        transcript.calls("Bash", "5 passed", is_error=False, command=f"{TESTS} {shown}")
    facts = [(item.text, item.notes) for item in recap_of(transcript).facts[1:]]
    assert facts == [("`pytest -q`", ('ok t9 "5 passed"',))]


def test_a_command_that_failed_long_ago_is_no_longer_open() -> None:
    transcript = worked_session()
    before = recap_of(transcript)
    for number in range(30):
        transcript.calls("Read", "x = 1", path=f"src/m{number}.py")
    [command] = [item for item in recap_of(transcript).facts if item.text == "`pytest -q`"]
    assert (command.status, command.notes) == (None, ('failed t4 "FAILED tests/test_pool.py"',))
    assert before.facts[0].status is Status.OPEN
