"""Tests are marked `browser` and `processes` by their fixtures, and the core's tests start without Django."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
SERVED = """
import subprocess
import pytest

@pytest.fixture
def _web_server(): ...

@pytest.fixture
def browser(): ...

@pytest.fixture
def page(browser): ...

def test_plain(): ...
def test_served(_web_server): ...
def test_seen(page): ...
def test_unmarked(): subprocess.run(["true"])

@pytest.mark.processes
def test_marked(): subprocess.run(["true"])
"""

MARKERS = """
import pytest

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    for item in items:
        print("marked", item.name, *sorted({mark.name for mark in item.iter_markers()}))
"""


def run_pytest(*arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


def test_fixtures_imply_markers_and_starting_a_process_without_one_fails(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    browser\n    processes\n    trajectories\n"
    )
    (tmp_path / "conftest.py").write_text(MARKERS)
    (tmp_path / "test_sample.py").write_text(SERVED)
    output = run_pytest(
        str(tmp_path), "-s", "-p", "tests.plugins.lanes", "-p", "no:schemathesis", "-p", "no:django"
    )
    marked = {line.split()[1]: line.split()[2:] for line in output.splitlines() if line.startswith("marked ")}
    assert marked == {
        "test_plain": [],
        "test_served": ["processes"],
        "test_seen": ["browser", "processes"],
        "test_unmarked": [],
        "test_marked": ["processes"],
    }
    assert "1 failed, 4 passed" in output
    assert "test_unmarked starts a process: mark it with @pytest.mark.processes" in output


def test_the_core_is_tested_without_django_and_playwright() -> None:
    code = """
import sys, pytest
assert pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "tests/compaction"]) == 0
print({"django", "playwright", "schemathesis", "celery"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "set()", done.stdout
