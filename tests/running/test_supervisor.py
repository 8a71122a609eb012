"""The supervisor restarts programs that end, and gives up on one that keeps failing."""

from __future__ import annotations

import sys

import pytest

from contextapp.embedded.errors import StartError
from contextapp.embedded.programs import Program
from contextapp.embedded.supervisor import SupervisedProgram

pytestmark = pytest.mark.processes


def ending_with(code: int) -> SupervisedProgram:
    command = (sys.executable, "-c", f"raise SystemExit({code})")
    return SupervisedProgram(Program(name="It", command=command, is_ready=lambda: True))


def end_after(supervised: SupervisedProgram, seconds: float) -> None:
    """Let the program end this many seconds after its start and be restarted."""
    supervised.child.process.wait()
    supervised.check(supervised.started_at + seconds)
    assert supervised.restart_at is not None
    supervised.check(supervised.restart_at)


@pytest.mark.parametrize(("code", "seconds"), [(1, 0), (1, 20), (0, 1)])
def test_gives_up_on_a_program_that_keeps_failing(
    code: int, seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    supervised = ending_with(code)
    for _ in range(4):
        end_after(supervised, seconds)
    with pytest.raises(StartError, match=r"^It failed 5 times in 120 seconds; giving up\.$"):
        end_after(supervised, seconds)
    pauses = [line.partition("Restarting it in ")[2] for line in capsys.readouterr().err.splitlines()]
    assert pauses == ["0.5 s.", "1 s.", "2 s.", "4 s."]


@pytest.mark.parametrize(("code", "seconds"), [(0, 15), (1, 50)])
def test_restarts_and_occasional_failures_are_not_limited(
    code: int, seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    supervised = ending_with(code)
    for _ in range(8):
        end_after(supervised, seconds)
    supervised.child.process.wait()
    assert capsys.readouterr().err.count(f"It ended (exit code {code}). Restarting it") == 8
