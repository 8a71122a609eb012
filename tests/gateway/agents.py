"""Claude Code and Codex as npm packages, run without a person against a gateway."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

import pytest

PACKAGES = ("@anthropic-ai/claude-code", "@openai/codex")

#: The packages are kept between runs: together they have 600 MB.
FOLDER = Path(os.environ.get("CONTEXTAPP_TEST_AGENTS") or Path(tempfile.gettempdir()) / "contextapp-agents")

#: Seconds for a whole session of an agent.
PATIENCE = 180


@cache
def agent_command(name: str) -> str:
    """Return the path of an agent's program. Installs it if necessary, or skips the test."""
    program = FOLDER / "node_modules" / ".bin" / name
    if not program.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not installed: the real clients are not tested")
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = [
            npm,
            "install",
            "--prefix",
            str(FOLDER),
            "--no-audit",
            "--no-fund",
            "--fetch-timeout=20000",
            *PACKAGES,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode or not program.exists():
            pytest.skip(f"npm cannot install {name}: the real clients are not tested")
    return str(program)


def claude_code(
    home: Path,
    *,
    gateway: str,
    key: str,
    prompt: str,
    headers: Sequence[str] = (),
    options: Sequence[str] = ("--allowedTools", "Bash"),
    settings: Mapping[str, str] | None = None,
) -> tuple[dict[str, object], bytes]:
    """Run Claude Code on a prompt. Returns its result and its log of the session.

    `settings` are further environment variables; they may replace the gateway by another base URL.
    """
    command = [agent_command("claude"), "-p", prompt, *options, "--output-format", "json"]
    environment = {
        "ANTHROPIC_BASE_URL": f"{gateway}/anthropic",
        "ANTHROPIC_API_KEY": "sk-ant-test",
        "ANTHROPIC_CUSTOM_HEADERS": "\n".join([f"X-Contextapp-Key: {key}", *headers]),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        **(settings or {}),
    }
    result: dict[str, object] = json.loads(_run(command, home, environment))
    [log] = (home / ".claude" / "projects").rglob("*.jsonl")
    return result, log.read_bytes()


def codex(
    home: Path,
    *,
    gateway: str,
    key: str,
    prompt: str,
    config: str = "",
    headers: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[dict[str, object]], bytes]:
    """Run Codex on a prompt. Returns its events and its log of the session. `config` is added to its own."""
    sent = ", ".join(f'"{name}" = "{value}"' for name, value in {"X-Contextapp-Key": key, **headers}.items())
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(f"""
        model = "gpt-5.1-codex"
        model_provider = "contextapp"
        [model_providers.contextapp]
        name = "contextapp"
        base_url = "{gateway}/openai/v1"
        wire_api = "responses"
        env_key = "OPENAI_API_KEY"
        supports_websockets = false
        http_headers = {{ {sent} }}
        {config}
    """)
    options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json"]
    command = [agent_command("codex"), "exec", *options, prompt]
    output = _run(command, home, {"CODEX_HOME": str(home), "OPENAI_API_KEY": "sk-test"})
    [log] = (home / "sessions").rglob("*.jsonl")
    return [json.loads(line) for line in output.splitlines()], log.read_bytes()


def run_as_shown(snippet: str, home: Path) -> None:
    """Run the commands of a page in a shell, in the folder in which Claude Code runs."""
    path = f"{Path(agent_command('claude')).parent}:{os.environ['PATH']}"
    _run(["sh", "-ec", snippet], home, {"PATH": path})


def _run(command: list[str], home: Path, environment: dict[str, str]) -> str:
    work = home / "work"
    work.mkdir(parents=True, exist_ok=True)
    inherited = {"PATH": os.environ["PATH"], "HOME": str(home)}
    done = subprocess.run(
        command,
        cwd=work,
        env=inherited | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
