"""Replace `redaction/rules/gitleaks.toml` by the configuration of another version of gitleaks.

    python -m scripts.update_gitleaks path/to/gitleaks

The argument is a `gitleaks.toml` or a gitleaks executable, which contains it.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path

import re2

from redaction.gitleaks import RULES_FILE

_TITLE = b'title = "gitleaks config"'
_HEADER = b"# This file has been auto-generated"
_BINARY = re.compile(rb"[^\t\n\r -~\x80-\xff]")


def configuration(data: bytes) -> str:
    """Return the configuration in a file. Raises `ValueError` if there is none or a pattern is invalid."""
    title = data.find(_TITLE)
    if title < 0:
        raise ValueError("no gitleaks configuration in this file")
    start = max(data.rfind(_HEADER, 0, title), 0)
    end = _BINARY.search(data, title)
    text = data[start : end.start() if end else None].decode().strip() + "\n"
    for rule in tomllib.loads(text)["rules"]:
        re2.compile(rule.get("regex", ""))
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="Update the detection rules of gitleaks.")
    parser.add_argument("file", type=Path)
    RULES_FILE.write_text(configuration(parser.parse_args().file.read_bytes()))


if __name__ == "__main__":
    main()
