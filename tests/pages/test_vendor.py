"""Static files. The vendored browser libraries match their pinned versions and include their licenses."""

import hashlib
import json
import re
from pathlib import Path

import pytest

VENDOR = Path(__file__).resolve().parents[2] / "static" / "vendor"
PINS = json.loads((VENDOR / "versions.json").read_text())


def vendored(name: str, path: str) -> Path:
    return VENDOR / PINS[name]["folder"] / Path(path).name


@pytest.mark.parametrize("name", PINS)
def test_files_are_the_pinned_ones(name):
    for path, sha256 in PINS[name]["files"].items():
        assert hashlib.sha256(vendored(name, path).read_bytes()).hexdigest() == sha256, path


@pytest.mark.parametrize("name", PINS)
def test_every_library_includes_its_license(name):
    assert vendored(name, "LICENSE").is_file()


def test_nothing_is_vendored_without_a_pin():
    pinned = {vendored(name, path) for name, pin in PINS.items() for path in pin["files"]}
    found = {path for folder in VENDOR.iterdir() if folder.is_dir() for path in folder.glob("[!_.]*")}
    assert found == pinned


def test_versions_in_the_files_match_the_pins():
    htmx = vendored("htmx.org", "dist/htmx.min.js").read_text()
    uplot = vendored("uplot", "dist/uPlot.iife.min.js").read_text()
    assert re.search(r'version:"([\d.]+)"', htmx)[1] == PINS["htmx.org"]["version"]
    assert re.search(r"uPlot \(v([\d.]+)\)", uplot)[1] == PINS["uplot"]["version"]


def test_a_file_that_an_upgrade_replaces_is_served_whole(client, settings, tmp_path):
    settings.STATICFILES_DIRS = [tmp_path]
    style = tmp_path / "style.css"
    for content in (b"a { color: red }", b"a { color: red; background: white }"):
        style.write_bytes(content)
        response = client.get("/static/style.css")
        assert int(response["Content-Length"]) == len(content)
        assert b"".join(response.streaming_content) == content
