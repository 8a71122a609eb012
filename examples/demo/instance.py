"""The contextapp instance of the demo: a running one, or one that the demo starts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import urllib3

ROOT = Path(__file__).resolve().parents[2]
_START_SECONDS = 120


class DemoError(Exception):
    """The demo cannot continue. The message explains the reason and the solution."""


@contextmanager
def instance() -> Iterator[tuple[str, str]]:
    """Yield URL and API key. An instance started here runs until Ctrl-C, so that you can view the session."""
    url = f"http://127.0.0.1:{os.environ.get('CONTEXTAPP_PORT') or '8000'}"
    home = Path(os.environ.get("CONTEXTAPP_HOME") or ROOT / ".contextapp")
    if _answers(url):
        yield url, _key(home)
        return
    print(f"No contextapp is running at {url}. Starting one.", flush=True)
    process = subprocess.Popen([sys.executable, "-m", "contextapp"], cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        _wait(process, url)
        yield url, _key(home)
        if sys.stdout.isatty():
            print(
                f"contextapp keeps running. Log in as admin with the password in {home / 'admin-password'}.\n"
                "Press Ctrl-C to stop.",
                flush=True,
            )
            process.wait()
    finally:
        process.terminate()
        process.wait()


def _wait(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not _answers(url):
        if process.poll() is not None:
            raise DemoError(
                "contextapp did not start; see its error above. "
                "If an instance is running on another port, set CONTEXTAPP_PORT to that port."
            )
        if time.monotonic() > deadline:
            raise DemoError(f"contextapp did not start within {_START_SECONDS} s.")
        time.sleep(0.2)


def _answers(url: str) -> bool:
    try:
        urllib3.request("GET", f"{url}/login/", timeout=2, retries=False)
    except urllib3.exceptions.HTTPError:
        return False
    return True


def _key(home: Path) -> str:
    if key := os.environ.get("CONTEXTAPP_API_KEY"):
        return key
    file = home / "api-key"
    try:
        return file.read_text().strip()
    except OSError as error:
        raise DemoError(f"{file}: {error.strerror}. Set CONTEXTAPP_API_KEY to an API key.") from error
