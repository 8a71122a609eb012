"""The code blocks in docs/reference/client.md run."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import contextapp_client
import pytest
from scripted_model import Reply, ScriptedModel

_TEXT = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "client.md").read_text()


def test_the_code_runs(
    served_url: str, api_key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONTEXTAPP_URL", served_url)
    monkeypatch.setenv("CONTEXTAPP_API_KEY", api_key)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none-is-needed")
    replies = [Reply("A test is missing; the build asks for it.")] * 4
    # In a separate thread, because Playwright runs an event loop in the thread of the tests.
    with ScriptedModel(replies) as model, ThreadPoolExecutor(1) as thread:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        names: dict[str, object] = {}
        for block in re.findall(r"^```python\n(.*?)^```", _TEXT, re.DOTALL | re.MULTILINE):
            thread.submit(exec, block, names).result()
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("1 ")
    assert "[[0, 1], [0, 1], [0, 1]]" in said
    assert said[-2:] == ["working memory is at revision 3 False", "stale_turn"]


@pytest.mark.parametrize("kind", [contextapp_client.ContextApp, contextapp_client.Session])
def test_every_call_is_documented(kind: type) -> None:
    calls = [call for call in dir(kind) if callable(getattr(kind, call)) and not call.startswith("_")]
    assert calls
    assert [call for call in calls if f".{call}(" not in _TEXT] == []


def test_every_exception_is_documented() -> None:
    kinds = [
        name
        for name in contextapp_client.__all__
        if isinstance(kind := getattr(contextapp_client, name), type) and issubclass(kind, Exception)
    ]
    assert kinds
    assert [name for name in kinds if name not in _TEXT] == []
