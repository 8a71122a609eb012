"""The supervisor restarts programs that end, rarely if one keeps failing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from contextapp.embedded.programs import Program
from contextapp.embedded.supervisor import SupervisedProgram

pytestmark = pytest.mark.processes


def ending_with(code: int, log: Path | None = None) -> SupervisedProgram:
    command = (sys.executable, "-c", f"print('No space left on device'); raise SystemExit({code})")
    return SupervisedProgram(Program(name="It", command=command, is_ready=lambda: True, log=log))


def end_after(supervised: SupervisedProgram, seconds: float) -> None:
    """Let the program end this many seconds after its start and be restarted."""
    supervised.child.process.wait()
    supervised.check(supervised.started_at + seconds)
    assert supervised.restart_at is not None
    supervised.check(supervised.restart_at)


@pytest.mark.parametrize(("code", "seconds"), [(1, 0), (1, 20), (0, 1)])
def test_a_program_that_keeps_failing_is_tried_again_after_long_pauses(
    code: int, seconds: float, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    supervised = ending_with(code, log=tmp_path / "log")
    for _ in range(8):
        end_after(supervised, seconds)
    lines = capsys.readouterr().err.splitlines()
    pauses = [line.partition("Restarting it in ")[2] for line in lines[:4]]
    assert pauses == ["0.5 s.", "1 s.", "2 s.", "4 s."]
    cause = f"failed 5 times in 120 s: No space left on device (log: {tmp_path / 'log'})"
    assert lines[4:] == [f"contextapp: It {cause}. Trying again every 30 s."] * 4


@pytest.mark.parametrize(("code", "seconds"), [(0, 15), (1, 50)])
def test_restarts_and_occasional_failures_are_not_limited(
    code: int, seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    supervised = ending_with(code)
    for _ in range(8):
        end_after(supervised, seconds)
    supervised.child.process.wait()
    assert capsys.readouterr().err.count(f"It ended (exit code {code}). Restarting it") == 8
