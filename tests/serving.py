"""A real web server and a real browser."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection
from playwright.sync_api import Browser, sync_playwright

from contextapp.embedded import home as homes
from contextapp.embedded import servers
from contextapp.embedded.supervisor import Supervisor

ROOT = Path(__file__).resolve().parents[1]
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MACOS_CHROME = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
# No background requests such as updates, and no animations of tabs, which take a quarter of the CPU time of
# opening a page. Animations of pages are not affected. One process renders all pages.
CHROMIUM_FLAGS = (
    "--animation-duration-scale=0",
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
    "--disable-extensions",
    "--disable-component-extensions-with-background-pages",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def web_server(root: Path = ROOT) -> Iterator[str]:
    """Serve the code in `root` with granian on the test database, and yield the URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = servers.web("127.0.0.1", port)
    environment = {
        **program.environment,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DATABASE_URL": database_url(),
        "CELERY_BROKER_URL": settings.CELERY_BROKER_URL,
        "CONTEXTAPP_TEST_HOME": str(settings.HOME),
        "PYTHONPATH": str(ROOT),  # for tests.settings
    }
    with Supervisor() as supervisor:
        with chdir(root):
            supervisor.start(replace(program, environment=environment))
        yield f"http://127.0.0.1:{port}"


def database_url() -> str:
    """Return the URL of the test database, for other processes."""
    url = os.environ.get("DATABASE_URL") or homes.database_url(settings.HOME)
    return urlsplit(url)._replace(path=f"/{connection.settings_dict['NAME']}").geturl()


def find_chromium() -> str | None:
    candidates = (os.environ.get("CONTEXTAPP_CHROMIUM"), *map(shutil.which, CHROMIUMS), str(MACOS_CHROME))
    return next((path for path in candidates if path and Path(path).is_file()), None)


@contextmanager
def chromium(executable: str) -> Iterator[Browser]:
    sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()  # its sandbox refuses root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, headless=True, args=[*CHROMIUM_FLAGS, *sandbox]
        )
        yield browser
        browser.close()
