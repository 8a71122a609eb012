"""`manage.py replay`: compare policies on log files, without a server or database."""

import gzip
import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from tests.replay.builders import items

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A compressed chat log with usage."""
    path = tmp_path / "run.json.gz"
    usage = {"prompt_tokens": 3_000, "completion_tokens": 40}
    path.write_bytes(
        gzip.compress(json.dumps({"model": "gpt-5", "messages": items(), "usage": usage}).encode())
    )
    return path


@pytest.mark.processes
def test_the_table_needs_no_server_and_no_database(log: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "contextapp.settings",
        "CONTEXTAPP_HOME": str(tmp_path / "home"),
        "DATABASE_URL": "postgres://nobody@127.0.0.1:1/nowhere",
    }
    ran = subprocess.run(
        [sys.executable, "manage.py", "replay", str(log), "--ratios", "0.5", "--json", str(tmp_path / "f")],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    for policy in ("off", "baseline", "masking", "balanced", "aggressive"):
        assert policy in ran.stdout
    rows = json.loads((tmp_path / "f").read_text())
    assert {row["budget"] for row in rows} == {"0.50"}
    assert all(row["calls"] == 60 for row in rows)
    assert not (tmp_path / "home").exists()


def test_budgets_in_tokens_and_custom_prices(log: Path) -> None:
    out = StringIO()
    call_command(
        "replay",
        str(log),
        "--policies",
        "balanced",
        "--budgets",
        "9,000",
        "--prices",
        "input=1",
        stdout=out,
        verbosity=0,
    )
    assert "9,000" in out.getvalue()
    assert "balanced" in out.getvalue()


def test_custom_policies(log: Path, tmp_path: Path) -> None:
    custom = '{"preset": "balanced", "name": "lower", "target": 0.3, "steps": ["collapse", "drop_oldest"]}'
    rows = tmp_path / "rows"
    arguments = ["--policies", "off", custom, "--ratios", "0.5", "--json", str(rows), "--jobs", "1"]
    call_command("replay", str(log), *arguments, stdout=StringIO(), verbosity=0)
    assert [row["policy"] for row in json.loads(rows.read_text())] == ["off", "lower"]


@pytest.mark.parametrize("policy", ["tiny", '{"target": 2}', "{"])
def test_an_invalid_policy_is_reported(log: Path, policy: str) -> None:
    with pytest.raises(CommandError, match="invalid policy"):
        call_command("replay", str(log), "--policies", policy, verbosity=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "or use --discover"),
        (["/nowhere/at/all"], "No such file or folder: /nowhere/at/all"),
        (["."], "Found no logs in /"),
    ],
)
def test_errors_are_reported(arguments: list[str], message: str, tmp_path: Path) -> None:
    given = [str(tmp_path) if argument == "." else argument for argument in arguments]
    with pytest.raises(CommandError, match=message):
        call_command("replay", *given, verbosity=0)


def test_missing_costs_are_explained(log: Path, tmp_path: Path) -> None:
    def printed(*arguments: str) -> str:
        out = StringIO()
        given = ["--policies", "off", "--ratios", "0.5", "--jobs", "1", *arguments]
        call_command("replay", str(log), str(unknown), *given, stdout=out, verbosity=0)
        return out.getvalue()

    unknown = tmp_path / "unknown.json"
    unknown.write_text(json.dumps({"model": "acme-7b", "messages": items()}))
    assert "the model of 1 session has no known price: unknown" in printed()
    assert "no known price" not in printed("--prices", "gpt-5")


def test_at_other_prices_a_logs_own_costs_do_not_count(tmp_path: Path) -> None:
    """The prediction at the given prices is compared with the cost of the same calls at these prices."""
    usage = {"input": 20_000, "output": 0, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 5.0}}
    answer = {"role": "assistant", "content": "Yes.", "model": "gpt-5", "usage": usage}
    lines = [
        {"type": "session", "id": "pi-1", "cwd": "/w", "timestamp": "2026-01-05T10:00:00Z"},
        {"type": "message", "message": {"role": "user", "content": "Go on."}},
        {"type": "message", "message": answer},
    ]
    log = tmp_path / "run.jsonl"
    log.write_text("\n".join(map(json.dumps, lines)))

    def printed(*prices: str) -> str:
        out = StringIO()
        given = ["--policies", "off", "--ratios", "1", "--jobs", "1", *prices]
        call_command("replay", str(log), *given, stdout=out, verbosity=0)
        return out.getvalue()

    assert "Actual cost of 1 session: $5.00. Predicted under `off`: $5.00 (" in printed()
    expected = "Actual cost of 1 session at these prices: $0.02. Predicted under `off`: $0.02 ("
    assert expected in printed("--prices", "input=1")
