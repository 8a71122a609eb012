"""Source code and diffs, highlighted with Pygments. The colors are in `static/css/code.css`."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import PurePosixPath

from django.utils.html import escape
from django.utils.safestring import SafeString
from pygments import format
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_by_name, find_lexer_class_for_filename
from pygments.util import ClassNotFound

from sessions.pages.text import visible

#: Longer text is displayed without highlighting, which takes about 1 ms per 1,000 characters.
MAX_LENGTH = 20_000

#: CPU time in seconds after which text is displayed without highlighting: with many lexers, some texts take
#: quadratic time.
_MOST_SECONDS = 0.2

#: A line number before each line, as agents' file tools print it: `    12→code`, `12\tcode`, ` 12  code`.
_NUMBERED = re.compile(r"^( *(\d{1,9}))(?:→|\t| {2}|: |\| |$)(.*)$")

_DIFF = re.compile(r"^(diff --git |--- \S.*\n\+\+\+ \S|@@ -\d+|\*\*\* Begin Patch)", re.MULTILINE)

_FORMATTER = HtmlFormatter(nowrap=True, classprefix="hl-")


def is_diff(text: str) -> bool:
    """Return whether the text begins like a diff or a patch."""
    return _DIFF.search(text[:500]) is not None


def language_of(path: str) -> str | None:
    """Return the name of the language of a file by its name, or None if it is unknown or plain text."""
    return _language_of_name(PurePosixPath(path.replace("\\", "/")).name[:100])


@lru_cache(maxsize=1_000)
def _language_of_name(name: str) -> str | None:
    found = find_lexer_class_for_filename(name) if name else None
    return found.aliases[0] if found is not None and found.name != "Text only" and found.aliases else None


def code_html(text: str, language: str | None) -> SafeString:
    """Return the text with highlighted syntax, or escaped if the language is unknown."""
    shown = visible(text)
    lexer = _lexer(language[:100]) if language and len(shown) <= MAX_LENGTH else None
    if lexer is None:
        return escape(shown)
    tokens, end = [], time.thread_time() + _MOST_SECONDS
    for token in lexer.get_tokens(shown):
        tokens.append(token)
        if time.thread_time() > end:
            return escape(shown)
    html = format(tokens, _FORMATTER)
    # Pygments adds a final line break.
    return SafeString(html if shown.endswith("\n") else html.removesuffix("\n"))


def numbered_html(text: str, language: str | None) -> SafeString | None:
    """Return the lines with their numbers in a gutter, or None if the text has no line numbers."""
    lines = text.splitlines()
    numbered = list(_numbered(lines))
    if len(numbered) < 2:
        return None
    code = code_html("\n".join(match[3] for match in numbered), language).split("\n")
    gutters = (f'<span class="gutter">{match[1]}  </span>' for match in numbered)
    html = "\n".join(gutter + line for gutter, line in zip(gutters, code, strict=False))
    rest = "\n".join(lines[len(numbered) :])
    return SafeString(f"{html}\n{escape(visible(rest))}" if rest else html)


def _numbered(lines: Iterable[str]) -> Iterator[re.Match[str]]:
    """Yield the leading lines with consecutive numbers."""
    number = None
    for line in lines:
        match = _NUMBERED.match(line)
        if match is None or (number is not None and int(match[2]) != number + 1):
            return
        number = int(match[2])
        yield match


@lru_cache(maxsize=1_000)
def _lexer(language: str) -> Lexer | None:
    try:
        found = find_lexer_class_by_name(language)
    except ClassNotFound:
        return None
    return found(stripnl=False, ensurenl=False)
