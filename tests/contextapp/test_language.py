"""`scripts/check_language.py` finds words in prose, and not in code."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check_language import check


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("a.py", '"""The caller is told."""\n', [1]),
        ("a.py", 'def f():\n    """Return.\n\n    It lies here.\n    """\n', [4]),
        ("a.py", "x = 1\ny = 2  # counted anew\n", [2]),
        ("a.py", 'told = "anew"\nprint("nobody")\n', []),
        ("a.py", '"""Return `told` and `anew`."""\n', []),
        ("a.md", "# Title\n\nUp to 50 % of it, reckoned.\n", [3, 3]),
        ("a.md", "```\nit stands behind\n```\n\n`told`\n", []),
        ("a.html", "<p>{{ told }} {% if nobody %}work under way{% endif %}</p>\n", [1]),
    ],
)
def test_finds_words_in_prose_only(tmp_path: Path, name: str, content: str, lines: list[int]) -> None:
    (tmp_path / name).write_text(content)
    assert [finding.line for finding in check(str(tmp_path / name))] == lines
