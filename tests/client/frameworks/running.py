"""Run the programs of this folder with the real frameworks.

The frameworks are locked in the dependency group `frameworks`, which conflicts with the versions that
contextapp uses. Their environment is kept between runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.serving import ROOT

FOLDER = Path(tempfile.gettempdir()) / "contextapp-frameworks"
#: Maximum seconds for the run of an agent.
PATIENCE = 120


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


def run_agent(name: str, *, url: str, key: str, session: str, provider: str, model: str = "gpt-5") -> str:
    """Run the program `name` of this folder, and return the last message of its agent."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "clients" / "python" / "src"),
        "CONTEXTAPP_URL": url,
        "CONTEXTAPP_KEY": key,
        "SESSION": session,
        "MODEL": model,
        "OPENAI_BASE_URL": f"{provider}/v1",
        "OPENAI_API_KEY": "sk-test",
        "ANTHROPIC_BASE_URL": provider,
        "ANTHROPIC_API_BASE": provider,  # LiteLLM's name
        "ANTHROPIC_API_KEY": "sk-test",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    program = Path(__file__).with_name(f"{name}_agent.py")
    done = subprocess.run(
        [frameworks_python(), program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert not done.returncode, done.stderr
    return done.stdout.strip()
