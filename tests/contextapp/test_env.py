"""Environment variables: an invalid value is reported in one line, and each variable is documented."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextapp import env

ROOT = Path(__file__).resolve().parents[2]
READERS = {"text", "integer", "seconds", "flag", "items", "hosts", "origins", "choice", "url", "web_url"}
ENCODED = "with special characters in names and passwords percent-encoded"
HOSTS = "host names and addresses without a scheme or port, such as x.example or [::1]"
#: Read by libraries or by the tests themselves.
READ_ELSEWHERE = {
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "PROMETHEUS_MULTIPROC_DIR"),
    *("HTTPS_PROXY", "NO_PROXY", "CONTEXTAPP_TRAJECTORIES", "CONTEXTAPP_CHROMIUM"),
}


def test_an_unset_or_empty_variable_has_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("X", raising=False)
    assert env.integer("X", 7) == 7
    monkeypatch.setenv("X", "")
    assert (env.integer("X", 7), env.flag("X", default=True), env.text("X", "a")) == (7, True, "a")
    assert (env.seconds("X", 1.5), env.items("X", "a, b"), env.choice("X", ("a",))) == (1.5, ["a", "b"], "")


def test_a_valid_variable_is_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "12")
    assert (env.integer("X", 7), env.seconds("X", 1), env.text("X")) == (12, 12.0, "12")
    monkeypatch.setenv("X", "off")
    assert env.flag("X", default=True) is False


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (lambda: env.integer("X", 7), "many", "X is 'many': expected a whole number of at least 0."),
        (lambda: env.integer("X", 7, minimum=1), "0", "X is '0': expected a whole number of at least 1."),
        (lambda: env.integer("X", 7, maximum=9), "10", "X is '10': expected a whole number from 0 to 9."),
        (lambda: env.seconds("X", 7), "0", "X is '0': expected a number of seconds greater than 0."),
        (lambda: env.seconds("X", 7), "nan", "X is 'nan': expected a number of seconds greater than 0."),
        (lambda: env.flag("X"), "maybe", "X is 'maybe': expected true or false."),
        (
            lambda: env.origins("X"),
            "https://a.example,b.example",
            "X is invalid: expected origins such as https://ctx.example.com.",
        ),
        (
            lambda: env.hosts("X", ""),
            "localhost,ctx.example.com:8000",
            f"X is invalid: expected {HOSTS}.",
        ),
        (lambda: env.choice("X", ("file", "s3")), "ftp", "X is 'ftp': expected file or s3."),
        (
            lambda: env.url("X", "", schemes=("https",), example="https://host"),
            "//user:hidden@host",
            f"X is invalid: expected a URL such as https://host, {ENCODED}.",
        ),
    ],
)
def test_an_invalid_variable_is_named(
    read, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("X", value)
    with pytest.raises(env.InvalidVariable) as raised:
        read()
    assert raised.value.code == f"contextapp: {message}"


@pytest.mark.parametrize(
    "value",
    ["db://user:hid/den@host/name", "db://user:hid#den@host/name", "db://user@host:port/name", "db:/host"],
)
def test_an_invalid_url_is_not_shown(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may contain a password."""
    monkeypatch.setenv("X", value)
    with pytest.raises(env.InvalidVariable, match="percent-encoded") as raised:
        env.url("X", "", schemes=("db",), example="db://host")
    assert "host/name" not in str(raised.value.code)
    assert "den" not in str(raised.value.code)


def test_a_url_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env.web_url("UNSET") == ""
    for value in ("https://host/path", "http://user:p%40s%2Fs@[::1]:8000"):
        monkeypatch.setenv("X", f"{value}/")
        assert env.web_url("X") == value


def test_several_urls_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"schemes": ("db",), "example": "db://host", "separator": ";"}
    monkeypatch.setenv("X", "db://user:pass@a;db://user:pass@b")
    assert env.url("X", "", **options) == "db://user:pass@a;db://user:pass@b"
    monkeypatch.setenv("X", "db://user:pass@a;user:hid/den@b")
    with pytest.raises(env.InvalidVariable, match="percent-encoded"):
        env.url("X", "", **options)


def test_hosts_and_origins_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "localhost, .example.com, 10.0.0.1, [::1], *")
    assert env.hosts("X", "") == ["localhost", ".example.com", "10.0.0.1", "[::1]", "*"]
    monkeypatch.setenv("X", "https://a.example/,http://b.example:8000")
    assert env.origins("X") == ["https://a.example", "http://b.example:8000"]


@pytest.mark.processes
@pytest.mark.parametrize(
    "command",
    [
        ("-m", "contextapp"),
        ("manage.py", "migrate"),
        ("-c", "import contextapp.wsgi"),
        ("-m", "contextapp.worker", "--processes=1"),
        ("-m", "contextapp.scheduler", "--schedule", "unused"),
    ],
)
def test_every_program_reports_it_in_one_line(command: tuple[str, ...], tmp_path: Path) -> None:
    environment = os.environ | {
        "CONTEXTAPP_HOME": str(tmp_path / "home"),
        "CONTEXTAPP_PORT": "0",
        "CONTEXTAPP_RATE_LIMIT": "many",
        "DJANGO_SETTINGS_MODULE": "contextapp.settings",
    }
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert re.fullmatch(
        r"contextapp: CONTEXTAPP_(PORT is '0'|RATE_LIMIT is 'many'): expected .*\n", done.stderr
    )


def test_the_documentation_lists_every_variable() -> None:
    documented = set(
        re.findall(
            r"`([A-Z]+(?:_[A-Z0-9]+)+)`", (ROOT / "docs" / "reference" / "configuration.md").read_text()
        )
    )
    assert documented == {name for name, _ in variables()} | READ_ELSEWHERE


def test_the_documentation_has_the_numbers_that_apply_by_default() -> None:
    text = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    documented: dict[str, str] = {}
    for names, defaults in re.findall(r"^\| (`\S+`(?:, `\S+`)*) \| (.*?) \|", text, re.MULTILINE):
        documented |= zip(names.replace("`", "").split(", "), defaults.split(", "), strict=False)
    numbers = {name: str(eval(default)) for name, default in variables() if re.match(r"\d", default)}
    assert numbers["CONTEXTAPP_MAX_BODY_BYTES"] == "16777216"
    assert {name: documented[name].strip("`") for name in numbers} == numbers


def variables() -> Iterator[tuple[str, str]]:
    """Yield name and default, as an expression, of calls such as `env.text("NAME", default)`."""
    for file in (ROOT / "contextapp").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                function = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
                name = str(node.args[0].value)
                if function in READERS and re.fullmatch(r"[A-Z]+(_[A-Z]+)+", name):
                    yield name, ast.unparse(node.args[1]) if len(node.args) > 1 else ""


def test_variables_are_read_in_one_place() -> None:
    """Other uses of `os.environ` pass the environment on to child processes or configure libraries."""
    allowed = re.compile(
        r"DJANGO_SETTINGS_MODULE|CELERY_SKIP_CHECKS|PROMETHEUS|FASTOKENS|\*\*os\.environ"
        r"|XDG_RUNTIME_DIR|= str\(home\)"
    )
    packages = ("contextapp", "accounts", "sessions", "replay", "compaction", "redaction", "pricing")
    for package in packages:
        for file in (ROOT / package).rglob("*.py"):
            for line in file.read_text().splitlines():
                if "os.environ" in line and file.name not in {"env.py", "credentials.py"}:
                    assert allowed.search(line), f"{file}: {line}"
