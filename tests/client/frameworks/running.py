"""Run the programs of this folder with the real frameworks.

The frameworks are locked in the dependency group `frameworks`, which conflicts with the versions that
contextapp uses. Their environment is kept between runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.serving import ROOT

FOLDER = Path(tempfile.gettempdir()) / "contextapp-frameworks"
HERE = Path(__file__).parent
#: The modules that the programs import, by the beginning of their names.
MODULES = {
    "pydantic_ai": ("pydantic_ai.models.anthropic", "pydantic_ai.models.openai"),
    "langchain": ("langchain.agents", "langchain_anthropic", "langchain_openai"),
    "litellm": ("litellm",),
    "openai_agents": ("agents",),
}


@cache
def frameworks_python() -> str:
    """Return the Python of the frameworks' environment. Installs it, or skips the test."""
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        pytest.skip("uv is not installed: the adapters are not tested")
    done = subprocess.run(
        [uv, "sync", "--frozen", "--no-progress", "--only-group", "frameworks", "--python", sys.executable],
        cwd=ROOT,
        env=os.environ | {"UV_PROJECT_ENVIRONMENT": str(FOLDER), "UV_PYTHON_DOWNLOADS": "never"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if done.returncode:
        pytest.skip(f"The frameworks cannot be installed, so their adapters are not tested: {done.stderr}")
    return str(FOLDER / "bin" / "python")


class Frameworks:
    """Runs the programs of this folder. Each framework is imported once, by a `host.py`."""

    def __init__(self) -> None:
        self._hosts: dict[tuple[str, ...], subprocess.Popen[str]] = {}

    def run_agent(
        self, name: str, *, url: str, key: str, session: str, provider: str, model: str = "gpt-5"
    ) -> str:
        """Run the program `name` of this folder, and return the last message of its agent."""
        environment = {
            "CONTEXTAPP_URL": url,
            "CONTEXTAPP_KEY": key,
            "SESSION": session,
            "MODEL": model,
            "OPENAI_BASE_URL": f"{provider}/v1",
            "OPENAI_API_KEY": "sk-test",
            "ANTHROPIC_BASE_URL": provider,
            "ANTHROPIC_API_BASE": provider,  # LiteLLM's name
            "ANTHROPIC_API_KEY": "sk-test",
        }
        host = self._host(next(modules for each, modules in MODULES.items() if name.startswith(each)))
        assert host.stdin is not None
        assert host.stdout is not None
        host.stdin.write(json.dumps([str(HERE / f"{name}_agent.py"), environment]) + "\n")
        host.stdin.flush()
        status, output, errors = json.loads(host.stdout.readline())
        assert not status, errors
        return str(output).strip()

    def stop(self) -> None:
        for host in self._hosts.values():
            host.communicate()

    def _host(self, modules: tuple[str, ...]) -> subprocess.Popen[str]:
        if modules not in self._hosts:
            self._hosts[modules] = subprocess.Popen(
                [frameworks_python(), HERE / "host.py", *modules],
                env={
                    "PATH": os.environ["PATH"],
                    "PYTHONPATH": str(ROOT / "clients" / "python" / "src"),
                    "OPENAI_AGENTS_DISABLE_TRACING": "1",
                    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        return self._hosts[modules]
