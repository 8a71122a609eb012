"""What the supervisor makes of a program that ends: a loop of failures is told, a restart is none."""

from __future__ import annotations

import sys

import pytest

from contextapp.embedded.errors import StartError
from contextapp.embedded.programs import Program
from contextapp.embedded.supervisor import Supervised


def ending_with(code: int) -> Supervised:
    command = (sys.executable, "-c", f"raise SystemExit({code})")
    return Supervised(Program(name="It", command=command, is_ready=lambda: True))


def end_after(supervised: Supervised, seconds: float) -> None:
    """It ends, so long after its start, and is started again."""
    supervised.child.process.wait()
    supervised.look(supervised.started_at + seconds)
    assert supervised.restart_at is not None
    supervised.look(supervised.restart_at)


@pytest.mark.parametrize(("code", "seconds"), [(1, 0), (1, 20), (0, 1)])
def test_a_program_that_keeps_failing_is_given_up(
    code: int, seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    supervised = ending_with(code)
    for _ in range(4):
        end_after(supervised, seconds)
    with pytest.raises(StartError, match=r"^It ended 5 times in a short while; giving up\.$"):
        end_after(supervised, seconds)
    pauses = [line.partition("again in ")[2] for line in capsys.readouterr().err.splitlines()]
    assert pauses == ["0.5 s.", "1 s.", "2 s.", "4 s."]


@pytest.mark.parametrize(("code", "seconds"), [(0, 15), (1, 50)])
def test_restarts_and_failures_now_and_then_stop_nothing(
    code: int, seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    supervised = ending_with(code)
    for _ in range(8):
        end_after(supervised, seconds)
    supervised.child.process.wait()
    assert capsys.readouterr().err.count(f"It ended ({code}); starting it again") == 8
