"""Take the screenshots for the documentation: the demo session in light and dark.

    make demo
    .venv/bin/python scripts/pictures.py http://localhost:8000 .contextapp/admin-password <session id>

Writes `docs/images/*.png`. Requires Chromium, like the tests.
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import serving  # noqa: E402

#: The path below the session, and the height of each picture in pixels.
PICTURES = {"session": ("", 1080), "compaction": ("compactions/3/", 640)}
WIDTH = 1200


def main() -> None:
    address, password_file, session = sys.argv[1:]
    executable = serving.find_chromium()
    if executable is None:
        raise SystemExit("Chromium is not installed; run scripts/browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for theme in ("light", "dark"):
            _take(browser, address, Path(password_file).read_text().strip(), session, theme)
        browser.close()


def _take(browser: Browser, address: str, password: str, session: str, theme: str) -> None:
    size = {"width": WIDTH, "height": 800}
    context = browser.new_context(
        base_url=address,
        viewport=size,
        color_scheme="dark" if theme == "dark" else "light",
        device_scale_factor=1.5,
    )
    page = context.new_page()
    page.goto("/login/")
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", password)
    page.press("[name=password]", "Enter")
    page.wait_for_url("**/p/**")
    hide = page.get_by_role("button", name="Hide all tips")
    if hide.count():
        hide.click()
        page.wait_for_load_state("networkidle")
    for name, (path, height) in PICTURES.items():
        page.set_viewport_size({"width": WIDTH, "height": height})
        page.goto(f"/p/default/sessions/{session}/{path}")
        page.wait_for_load_state("networkidle")
        page.screenshot(path=str(ROOT / "docs" / "images" / f"{name}-{theme}.png"))
    context.close()


if __name__ == "__main__":
    main()
