"""Checks of pages in a real browser."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Page, ViewportSize

DESKTOP = ViewportSize(width=1440, height=900)
PHONE = ViewportSize(width=390, height=800)
_IMPACTS = ["moderate", "serious", "critical"]
_COLOR_RULES = ["color-contrast", "link-in-text-block"]
# Other rules only find minor violations.
_STRUCTURE_RULES = """([impacts, colors]) => axe._audit.rules
    .filter(rule => rule.enabled && impacts.includes(rule.impact) && !colors.includes(rule.id))
    .map(rule => rule.id)"""
# The rules about colors take longest, so they check one of the elements that look the same: they and their
# ancestors have the same tags, classes and computed styles. Returns the looks that are not among `known`, as
# hashes, and keeps an element of each.
_SAMPLE_COLORS = """([theme, known]) => {
    const properties = ["color", "backgroundColor", "backgroundImage", "opacity", "fontSize", "fontWeight",
        "textDecorationLine", "textShadow", "position", "display", "visibility"];
    const hash = text => {
        let high = 0, low = 0;
        for (let at = 0; at < text.length; at++) {
            high = Math.imul(high ^ text.charCodeAt(at), 2654435761);
            low = Math.imul(low ^ text.charCodeAt(at), 1597334677);
        }
        return `${high} ${low}`;
    };
    const looks = new Set(known), sample = new Map();
    const visit = (element, parent) => {
        const style = getComputedStyle(element);
        const styles = properties.map(name => style[name]);
        const look = hash([parent, element.tagName, element.getAttribute("class"), ...styles].join("|"));
        const isText = node => node.nodeType === Node.TEXT_NODE && node.data.trim();
        const hasText = "placeholder" in element || [...element.childNodes].some(isText);
        if (hasText && !looks.has(look) && !sample.has(look)) sample.set(look, element);
        for (const child of element.children) visit(child, look);
    };
    visit(document.documentElement, theme);
    window.sampled = [...sample.values()];
    return [...sample.keys()];
}"""


def record_complaints(page: Page, complaints: list[str]) -> None:
    """Append the browser's errors and warnings to `complaints`: script errors, violations of the content
    security policy, failed requests."""

    def record(message: ConsoleMessage) -> None:
        # htmx reports a request as two errors if a newer one replaced it, as `hx-sync` demands. The first is
        # also that of other failed requests, for which the second names the reason.
        replaced = "htmx:afterRequest" in message.text or "htmx:sendAbort" in message.text
        if message.type in {"error", "warning"} and not replaced:
            complaints.append(message.text)

    page.on("console", record)
    page.on("pageerror", lambda error: complaints.append(str(error)))


#: The looks whose colors have been checked in this process.
_looks: set[str] = set()


def barriers(page: Page) -> list[str]:
    """Return the accessibility violations, except minor ones, that axe-core finds, one line each.

    In dark mode, only rules about colors are checked: the rest of a page does not depend on the theme.
    Colors are not checked again on elements that look like one that an earlier call has checked.
    """
    page.evaluate(Axe().axe_script)
    page.emulate_media(color_scheme="light")
    found = _violations(page, "document", runOnly=page.evaluate(_STRUCTURE_RULES, [_IMPACTS, _COLOR_RULES]))
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        new = page.evaluate(_SAMPLE_COLORS, [theme, list(_looks)])
        if new:
            lines = _violations(page, "sampled", runOnly=_COLOR_RULES)
            found += [f"{theme}: {line}" for line in lines]
            _looks.update(new)
    page.emulate_media(color_scheme="light")
    return found


def _violations(page: Page, context: str, **options: Any) -> list[str]:
    # Without the passed rules, which would double the time on long pages, and without downloading the style
    # sheets again, which only an experimental rule needs.
    options |= {"resultTypes": ["violations"], "preload": False}
    found = page.evaluate(f"options => axe.run({context}, options)", options)
    return [
        f"{rule['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for rule in found["violations"]
        if rule["impact"] in _IMPACTS
        for node in rule["nodes"]
    ]


def fits_in_width(page: Page) -> bool:
    """Return whether the page needs no horizontal scrolling."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
