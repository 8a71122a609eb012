"""The tools of the examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from toolbox import Toolbox


@pytest.fixture
def toolbox(tmp_path: Path) -> Toolbox:
    (tmp_path / "a.py").write_text("one\ntwo\nthree\n")
    return Toolbox(tmp_path)


def test_read(toolbox: Toolbox) -> None:
    assert toolbox.run("read_file", {"path": "a.py", "offset": 2, "limit": 1}) == ("    2  two", False)


def test_grep(toolbox: Toolbox) -> None:
    assert toolbox.run("grep", '{"pattern": "^t"}') == ("a.py:2: two\na.py:3: three", False)


def test_edit(toolbox: Toolbox) -> None:
    assert not toolbox.run("edit_file", {"path": "a.py", "old": "two", "new": "2"})[1]
    assert not toolbox.run("edit_file", {"path": "sub/b.py", "old": "", "new": "x"})[1]
    assert (toolbox.folder / "a.py").read_text() == "one\n2\nthree\n"
    assert (toolbox.folder / "sub" / "b.py").read_text() == "x"


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("edit_file", {"path": "a.py", "old": "e", "new": ""}, "occurs 3 times"),
        ("edit_file", {"path": "a.py", "old": "", "new": "x"}, "already exists"),
        ("read_file", {"path": "../x"}, "outside the project"),
        ("read_file", {"path": "b.py"}, "No such file"),
        ("read_file", {"file": "a.py"}, "unexpected keyword"),
        ("grep", {"pattern": "("}, "unterminated"),
        pytest.param(
            "run_command", {"command": "echo no; exit 3"}, "no\nexit code 3", marks=pytest.mark.processes
        ),
        ("fly", {}, "No tool fly"),
        ("read_file", "not json", "Expecting value"),
    ],
)
def test_errors_are_reported(toolbox: Toolbox, name: str, arguments: object, result: str) -> None:
    text, failed = toolbox.run(name, arguments)
    assert failed
    assert result in text
