"""Checks of pages in a real browser."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Page

_SERIOUS = {"serious", "critical"}
_COLOR_RULES = ["color-contrast", "link-in-text-block"]
# The rules about colors take longest, so they check one of the elements that look the same: they and their
# ancestors have the same tags, classes and computed styles.
_COLOR_SAMPLE = """() => {
    const properties = ["color", "backgroundColor", "backgroundImage", "opacity", "fontSize", "fontWeight",
        "textDecorationLine", "textShadow", "position", "display", "visibility"];
    const looks = new Map(), sample = new Map();
    const visit = (element, parent) => {
        const style = getComputedStyle(element);
        const styles = properties.map(name => style[name]);
        const key = [parent, element.tagName, element.getAttribute("class"), ...styles].join("|");
        if (!looks.has(key)) looks.set(key, looks.size);
        const look = looks.get(key);
        const isText = node => node.nodeType === Node.TEXT_NODE && node.data.trim();
        const hasText = "placeholder" in element || [...element.childNodes].some(isText);
        if (hasText && !sample.has(look)) sample.set(look, element);
        for (const child of element.children) visit(child, look);
    };
    visit(document.body, -1);
    return [...sample.values()];
}"""


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
    page.evaluate(Axe().axe_script)
    page.emulate_media(color_scheme="light")
    found = _violations(page, "() => document", rules={rule: {"enabled": False} for rule in _COLOR_RULES})
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        found += [f"{theme}: {line}" for line in _violations(page, _COLOR_SAMPLE, runOnly=_COLOR_RULES)]
    page.emulate_media(color_scheme="light")
    return found


def _violations(page: Page, context: str, **options: Any) -> list[str]:
    # Without the passed rules, which would double the time on long pages, and without downloading the style
    # sheets again, which only an experimental rule needs.
    options |= {"resultTypes": ["violations"], "preload": False}
    found = page.evaluate(f"options => axe.run(({context})(), options)", options)
    return [
        f"{rule['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for rule in found["violations"]
        if rule["impact"] in _SERIOUS
        for node in rule["nodes"]
    ]


def fits_in_width(page: Page) -> bool:
    """Return whether the page needs no horizontal scrolling."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
