"""Checks of pages in a real browser."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Page

_SERIOUS = {"serious", "critical"}
_COLOR_RULES = ["color-contrast", "link-in-text-block"]


def record_complaints(page: Page, complaints: list[str]) -> None:
    """Append the browser's errors and warnings to `complaints`: script errors, violations of the content
    security policy, failed requests."""

    def record(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            complaints.append(message.text)

    page.on("console", record)
    page.on("pageerror", lambda error: complaints.append(str(error)))


def barriers(page: Page) -> list[str]:
    """Return the serious and critical accessibility violations that axe-core finds, one line each.

    In dark mode, only rules about colors are checked: the rest of a page does not depend on the theme.
    """
    page.emulate_media(color_scheme="light")
    found = _violations(page)
    page.emulate_media(color_scheme="dark")
    found += [f"dark: {line}" for line in _violations(page, runOnly=_COLOR_RULES)]
    page.emulate_media(color_scheme="light")
    return found


def _violations(page: Page, **options: Any) -> list[str]:
    # Without the passed rules, which would double the time on long pages.
    found = Axe().run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for rule in found
        if rule["impact"] in _SERIOUS
        for node in rule["nodes"]
    ]


def fits_in_width(page: Page) -> bool:
    """Return whether the page needs no horizontal scrolling."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
