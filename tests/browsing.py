"""What must hold of every page that a real browser shows."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

_SERIOUS = {"serious", "critical"}


def hear_complaints(page: Page, heard: list[str]) -> None:
    """Adds to `heard` whatever the browser complains about from now on: errors of scripts, refusals of the
    content security policy, addresses that are not there."""
    page.on("console", lambda said: heard.append(said.text) if said.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: heard.append(str(error)))


def barriers(page: Page) -> list[str]:
    """What axe-core finds serious or critical on the page as it stands, a line each."""
    # Of what is in order it need not tell every element, which on a long page takes as long as the search.
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for rule in found
        if rule["impact"] in _SERIOUS
        for node in rule["nodes"]
    ]


def fits_in_width(page: Page) -> bool:
    """Whether the page needs no scrolling sideways in its window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
