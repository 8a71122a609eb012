"""The whole demo, with the real server and the real SDK."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from demo.faults import FAULTS
from scripted_model import pairing_error


@pytest.mark.processes
def test_the_project_has_its_faults_and_they_can_be_fixed(project_folder: Path) -> None:
    assert not passes(project_folder)
    for fault in FAULTS:
        file = project_folder / fault.path
        text = file.read_text()
        assert text.count(fault.old) == 1, fault.title
        file.write_text(text.replace(fault.old, fault.new))
    assert passes(project_folder)


def passes(folder: Path) -> bool:
    command = [sys.executable, "-m", "unittest", "-q"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def test_the_demo_compacts_several_times_and_succeeds(
    served_url: str, api_key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from demo.__main__ import BUDGET, play  # loads the SDK

    session = play(served_url, api_key).session
    info = session.info()
    assert info["turns"] >= 60
    assert info["compactions"] >= 4
    assert info["prompt"]["tokens"] <= BUDGET < info["prompt"]["raw_tokens"] / 4
    assert info["unpriced_turns"] == 0
    assert session.memory()["memory"]["decisions"] == [fault.decision for fault in FAULTS]
    turns = list(session.turns())
    assert "OK" in str(turns[-3]["messages"])
    assert sum("expand_clip" in str(turn["messages"]) for turn in turns) >= 1
    assert all(turn["prompt_served"] <= BUDGET for turn in turns if turn["prompt_served"] is not None)
    assert f"/sessions/{info['id']}/" in capsys.readouterr().out


def test_the_scripted_model_validates_tool_pairs() -> None:
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "x", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": ""}]}
    assert pairing_error([call, result]) is None
    for wrong in ([call], [result], [call, {"role": "user", "content": "hm"}], [call, result, result]):
        assert pairing_error(wrong)
