"""The static files of an image have hashed names only, and modules import each other under these names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect

from accounts.models import Project
from sessions.services.samples.claude_code import sample_log_import
from tests import serving
from tests.browsing import record_complaints

PARTS = (
    *("accounts", "compaction", "contextapp", "importers", "pricing", "redaction", "replay", "sessions"),
    *("docs", "static", "templates"),
)
NOT_COLLECTED = ("--ignore=drf_spectacular_sidecar", "--ignore=rest_framework")
HASHED = re.compile(r"\.[0-9a-f]{12}\.\w+$")
RELATIVE = re.compile(r"""["'](\.{1,2}/[^"']+)["']""")


@pytest.fixture(scope="session")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the code with collected static files, as the Dockerfile creates it.

    Without the files that only the API's pages load: compressing them takes seconds.
    """
    root = tmp_path_factory.mktemp("image")
    for name in PARTS:
        shutil.copytree(serving.ROOT / name, root / name)
    shutil.copy(serving.ROOT / "manage.py", root)
    (root / "staticfiles").mkdir()
    subprocess.run(
        [sys.executable, "manage.py", "collectstatic", "--noinput", *NOT_COLLECTED],
        cwd=root,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "contextapp.settings"},
        check=True,
        capture_output=True,
    )
    return root


@pytest.fixture(scope="module")
def image(collected: Path, django_db_setup: None) -> Iterator[str]:
    """Return the URL of a server that runs this copy."""
    with serving.web_server(collected) as url:
        yield url


@pytest.fixture
def page(browser: Browser, image: str, transactional_db: None) -> Iterator[Page]:
    context = browser.new_context(base_url=image)
    context.set_default_timeout(30_000)  # slow responses of a busy machine are not failures
    yield context.new_page()
    context.close()


def test_modules_import_each_other_under_hashed_names(collected: Path) -> None:
    modules = [*(collected / "staticfiles" / "js").rglob("*.js")]
    own = [*(serving.ROOT / "static" / "js").rglob("*.js")]
    assert len(modules) == len(own)
    assert [module.name for module in modules if not HASHED.search(module.name)] == []
    imports = [(module, name) for module in modules for name in RELATIVE.findall(module.read_text())]
    assert imports
    for module, name in imports:
        assert HASHED.search(name), (module.name, name)
        assert (module.parent / name).is_file(), (module.name, name)


def test_pages_load_only_hashed_names(page: Page, owner: User, project: Project) -> None:
    session = sample_log_import(project=project)
    complaints: list[str] = []
    requested: set[str] = set()
    record_complaints(page, complaints)
    page.on("request", lambda request: requested.add(urlsplit(request.url).path))

    page.goto("/login/")
    page.get_by_label("Username").fill(owner.username)
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name=session.title).first.click()
    expect(page.locator("canvas").first).to_be_visible()
    page.get_by_role("link", name="Lab", exact=True).click()
    expect(page.locator("canvas").first).to_be_visible()

    files = {path for path in requested if path.startswith("/static/")}
    assert {path for path in files if not HASHED.search(path)} == set()
    assert any("/js/chart/plot." in path for path in files)
    assert complaints == []
