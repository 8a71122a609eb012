"""A project folder and environment variables for the examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from contextapp_client import ContextApp
from demo.generate import make_project


@pytest.fixture
def app(served_url: str, api_key: str) -> ContextApp:
    return ContextApp(served_url, api_key)


@pytest.fixture
def project_folder(tmp_path: Path) -> Path:
    """The scratch project of the demo."""
    make_project(tmp_path / "parcelpost")
    return tmp_path / "parcelpost"


@pytest.fixture(autouse=True)
def provider_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC", "OPENAI"):
        monkeypatch.setenv(f"{name}_API_KEY", "not-needed")
        monkeypatch.delenv(f"{name}_AUTH_TOKEN", raising=False)
        monkeypatch.delenv(f"{name}_BASE_URL", raising=False)
