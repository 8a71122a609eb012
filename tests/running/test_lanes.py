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


def run_pytest(*arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


@pytest.fixture
def sample(tmp_path: Path) -> list[str]:
    """Return the arguments that run a file of tests with the plugin only."""
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    browser\n    processes\n    trajectories\n"
    )
    (tmp_path / "test_sample.py").write_text(SERVED)
    return [str(tmp_path), "-p", "tests.plugins.lanes", "-p", "no:schemathesis", "-p", "no:django"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("browser", {"test_seen"}),
        ("processes", {"test_served", "test_seen", "test_marked"}),
        ("not browser and not processes", {"test_plain", "test_unmarked"}),
    ],
)
def test_fixtures_imply_markers(sample: list[str], expression: str, expected: set[str]) -> None:
    output = run_pytest(*sample, "--collect-only", "-q", "-m", expression)
    assert {line.rpartition("::")[2] for line in output.splitlines() if "::" in line} == expected


def test_the_real_fixtures_imply_markers() -> None:
    collected = run_pytest("--collect-only", "-q", "-m", "browser", "tests/running/test_harness.py")
    assert "test_it_opens_a_page_as_a_user" in collected
    collected = run_pytest("--collect-only", "-q", "-m", "processes", "tests/api/test_methods.py")
    assert "1/" in collected.splitlines()[-1]


def test_starting_a_process_without_the_marker_fails(sample: list[str]) -> None:
    output = run_pytest(*sample)
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
