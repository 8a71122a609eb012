#!/usr/bin/env python3
"""Reject words of a translated register in templates, documentation, docstrings and comments.

Prints a line with the file, the line number and a suggestion for each occurrence. Usage:
scripts/check_language.py [--count] [FILE…]
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: A pattern and what to write instead.
WORDS = {
    r"told|tells?": "report, indicate, show, notify",
    r"stands? (?!alone)|stands?$|stood": "is, is stored, appears",
    r"anew": "again; re- (rebuild, recreate)",
    r"lies": "is, is stored, is located",
    r"reckon(?:s|ed|ing)?": "calculate, estimate",
    r"under way": "in progress, running",
    r"made good": "fixed, recovered",
    r"as (?:it is|they are)": "unchanged, as-is",
    r"(?:stands?|left|comes?|goes|runs?|queued?|waits?) behind": "after, following",
    r"what is gone|took away|taken away": "removed, evicted",
    r"somebody|nobody": "a user, another writer",
    r"of (?:its|their|his|one's) own|one's own": "separate, dedicated, custom",
    r"dearer": "more expensive",
    r"brings? back|brought back": "restore, retrieve",
    r"sightings?": "observation",
}
PERCENT = re.compile(r"\d %(?![\w{}(])")

_PATTERNS = [(re.compile(rf"\b(?:{words})\b", re.IGNORECASE), hint) for words, hint in WORDS.items()]
#: Matches every source with a finding, and few others: parsing each file would take several seconds.
_CANDIDATE = re.compile(rf"\b(?:{'|'.join(WORDS)})\b".replace("$", ""), re.IGNORECASE)
_SKIPPED = ("CHANGELOG.md", "static/vendor/", "LICENSE", "scripts/check_language.py")
_CODE = re.compile(r"```.*?```|`[^`\n]*`|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    text: str
    hint: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text!r}: write {self.hint}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="default: all templates, documents and Python files")
    parser.add_argument("--count", action="store_true", help="print the number of findings in each folder")
    options = parser.parse_args()
    findings = [finding for path in options.files or tracked_files() for finding in check(path)]
    if options.count:
        folders = Counter("/".join(finding.path.split("/")[:2]) for finding in findings)
        for folder, count in folders.most_common():
            print(f"{count:5}  {folder}")
    else:
        print("".join(f"{finding}\n" for finding in findings), end="")
    print(f"{len(findings)} findings", file=sys.stderr)
    return 1 if findings else 0


def tracked_files() -> list[str]:
    command = [
        "git",
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "*.py",
        "*.md",
        "*.html",
        "*.txt",
    ]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    files = sorted(set(listed.stdout.splitlines()))
    return [path for path in files if not path.startswith(_SKIPPED) and (ROOT / path).exists()]


def check(path: str) -> Iterator[Finding]:
    source = (ROOT / path).read_text()
    if path.endswith(".py"):
        prose, patterns = python_prose(source) if _CANDIDATE.search(source) else [], _PATTERNS
    elif path.endswith((".md", ".html")):
        prose, patterns = without_code(source), [*_PATTERNS, (PERCENT, "50%")]
    else:
        return
    for number, line in prose:
        for pattern, hint in patterns:
            for match in pattern.finditer(line):
                yield Finding(path, number, match[0].strip(), hint)


def without_code(source: str) -> list[tuple[int, str]]:
    """Return the lines of a document or template, without code and template tags."""
    prose = _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
    return list(enumerate(prose.split("\n"), 1))


def python_prose(source: str) -> list[tuple[int, str]]:
    """Return the lines of the docstrings and comments."""
    lines = [
        (token.start[0], token.string)
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            lines += docstring_lines(node.body)
    return sorted(lines)


def docstring_lines(body: Sequence[ast.stmt]) -> list[tuple[int, str]]:
    first = body[0] if body else None
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
        return []
    if not isinstance(first.value.value, str):
        return []
    return without_inline_code(first.value.value, first.lineno)


def without_inline_code(text: str, start: int) -> list[tuple[int, str]]:
    return [(start + number - 1, line) for number, line in without_code(text)]


if __name__ == "__main__":
    sys.exit(main())
