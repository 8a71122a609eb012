"""`docs/reference/api.md` documents all endpoints and error codes, and no others."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from sessions.api.errors import ApiError
from tests.api.patterns import API_PATTERNS

_REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def text() -> str:
    return (_REPOSITORY / "docs" / "reference" / "api.md").read_text()


def _documented_codes(text: str) -> dict[str, str]:
    """Return the documented statuses of each code."""
    table = text.split("| code | status | when |")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (\d.*?) \| .+ \|$", table, re.MULTILINE))


def _raised_codes() -> Iterator[tuple[str, str]]:
    """Yield the code and status of each error that the API raises, such as `Conflict("stale_turn", …)`."""
    statuses = {kind.__name__: str(kind.status) for kind in (ApiError, *ApiError.__subclasses__())}
    for path in (_REPOSITORY / "sessions" / "api").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in statuses:
                named = {each.arg: ast.unparse(each.value).strip("'") for each in node.keywords}
                code = named.get("code", ast.unparse(node.args[0]).strip("'"))
                if code.isidentifier() and not hasattr(node.args[0], "id"):
                    yield code, named.get("status", statuses[node.func.id])


def test_every_documented_code_exists(text: str) -> None:
    folders = (_REPOSITORY / "sessions", _REPOSITORY / "contextapp")
    sources = "\n".join(path.read_text() for folder in folders for path in folder.rglob("*.py"))
    assert [code for code in _documented_codes(text) if f'"{code}"' not in sources] == []


def test_every_raised_code_is_documented_with_its_status(text: str) -> None:
    documented = _documented_codes(text)
    raised = set(_raised_codes())
    assert ("stale_turn", "409") in raised
    assert ("memory_too_large", "422") in raised
    assert [each for each in sorted(raised) if each[1] not in documented.get(each[0], "")] == []


def test_every_rule_of_a_provider_is_documented() -> None:
    sources = "\n".join(path.read_text() for path in (_REPOSITORY / "compaction" / "dialects").rglob("*.py"))
    documented = (_REPOSITORY / "docs" / "reference" / "providers.md").read_text()
    rules = set(re.findall(r'"([ACR]\d+)"', sources))
    assert rules
    assert rules <= set(re.findall(r"^\| ([ACR]\d+):", documented, re.MULTILINE))


def test_every_call_has_a_curl_example(text: str) -> None:
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    for pattern in API_PATTERNS:
        address = re.sub(r"<[^>]+>", "[^/]+", str(pattern.pattern))
        assert re.search(rf"\$URL/{address}(?:[?\"\s]|$)", commands), str(pattern.pattern)


@pytest.mark.processes
def test_the_examples_run_as_shown(text: str, served_url: str, admin_key: str, tmp_path: Path) -> None:
    """The first sections compact a session and retrieve removed content."""
    (tmp_path / ".contextapp").mkdir()
    (tmp_path / ".contextapp" / "api-key").write_text(admin_key)
    shown = text.split("\n## Search")[0].replace("http://localhost:8000", served_url)
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", shown, re.DOTALL))
    done = subprocess.run(["bash", "-uc", commands], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.findall(r'"error":.*?"code":"(\w+)"', done.stdout) == ["not_replaceable"]
    assert '"matches":[{"line":1,"text":"100 101 ' in done.stdout  # a handle was found and expanded
    assert not done.stderr


def test_the_reference_has_a_way_back_and_the_chosen_theme(client: Client) -> None:
    assert 'href="/"' in client.get("/api/docs/").text
    client.cookies["theme"] = "dark"
    assert 'data-theme="dark"' in client.get("/api/docs/").text
