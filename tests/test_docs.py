"""The documentation: links have targets, and every page can be reached from the index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.apps import apps

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def links(page: Path) -> list[tuple[Path, str]]:
    """Return the files and anchors that a page links to."""
    found = []
    for target in _LINK.findall(page.read_text()):
        if not target.startswith(("http://", "https://", "mailto:")):
            file, _, anchor = target.partition("#")
            found.append(((page.parent / file).resolve() if file else page, anchor))
    return found


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, in GitHub's form."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_existing_targets(page: Path) -> None:
    for target, anchor in links(page):
        assert target.exists(), target
        if anchor:
            assert anchor in anchors(target), f"{target}#{anchor}"


def test_every_page_can_be_reached_from_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    reached, waiting = {index}, [index]
    while waiting:
        for target, _ in links(waiting.pop()):
            if target.suffix == ".md" and target not in reached:
                reached.add(target)
                waiting.append(target)
    assert set(ROOT.glob("docs/**/*.md")) <= reached


def test_the_architecture_lists_every_table() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text().split("## Tables")[1]
    listed = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)))
    models = [
        model.__name__
        for app in ("agent_sessions", "replay", "accounts")
        for model in apps.get_app_config(app).get_models()
    ]
    assert sorted(listed) == sorted(models)


def test_the_architecture_lists_every_service() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    folder = ROOT / "sessions" / "services"
    modules = {each.name for each in folder.iterdir() if each.name[0] != "_"}
    assert [name for name in sorted(modules) if f"`{name}" not in text] == []


def test_the_guide_for_contributors_names_existing_files() -> None:
    text = re.sub(r"```.*?```", "", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.DOTALL)
    named = {name for name in re.findall(r"`(\w[\w/.]*)`", text) if "/" in name}
    assert "static/js/prompt_sizes.js" in named
    folders = (ROOT, ROOT / "templates", ROOT / "clients/python/src/contextapp_client")
    assert [name for name in sorted(named) if not any((each / name).exists() for each in folders)] == []


def test_the_guide_to_monitoring_lists_every_metric() -> None:
    text = (ROOT / "docs" / "operations" / "deployment.md").read_text()
    sources = "\n".join(
        file.read_text() for name in ("gateway", "sessions") for file in (ROOT / name).rglob("*.py")
    )
    metrics = re.findall(r'(Counter|Gauge|Histogram)\(\s*"(contextapp_\w+)"', sources)
    names = [f"{name}_total" if kind == "Counter" else name for kind, name in metrics]
    assert sorted(re.findall(r"^\| `(contextapp_\w+)` \|", text, re.MULTILINE)) == sorted(names)
