"""Source code and diffs, highlighted with Pygments. The colors are in `static/css/code.css`."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import PurePosixPath
from types import new_class
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString
from pygments import format
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer, RegexLexer
from pygments.lexers import find_lexer_class_by_name, get_all_lexers
from pygments.util import ClassNotFound

from sessions.pages.text import visible

#: Longer text is displayed without highlighting, which takes about 1 ms per 1,000 characters.
MAX_LENGTH = 20_000

#: CPU time in seconds after which text is displayed without highlighting. It is checked after each token.
_MOST_SECONDS = 0.2

#: Pygments' names of the languages that are highlighted. If several have the same file names, the first one
#: applies. In others, a single token can take seconds to hours, during which the server does not respond:
#: `ini` reads `=====…` in quadratic time, and `perl` reads `s!\\\\…` in exponential time.
_LANGUAGES = (
    *("python", "bash", "javascript", "typescript", "tsx", "jsx", "json", "yaml", "toml", "html", "css"),
    *("sql", "go", "rust", "java", "c", "cpp", "csharp", "ruby", "kotlin", "swift", "diff"),
    *("make", "markdown", "xml", "lua", "splus"),
)

#: The beginnings of their patterns that take quadratic or exponential time. Each colors a detail.
_SLOW_PATTERNS = (
    r"(?s)\$'(\\\\|",  # Bash: $'…'
    r"<<-?\s*(\'?)\\?(\w+)[\w\W]+?",  # Bash: heredocs
    r"%(\(\w+\))?[-#0 +]*",  # Python: %-formats in strings
    r"(\s+)([^\n_]*)(_\b)",  # Python: `case _`
    r"(super)(\s*)",  # JavaScript: calls of super
    r"((?!\d)(?:[\w$]|\\u[0-9a-fA-F]{4}|",  # C and C++: functions
    r"(\s*(?:/[*].*?[*]/\s*)?)(include)",  # C and C++: files of #include
    r"(?<![\w)\]}])(<<[-~]?)",  # Ruby: heredocs
    r"^(\s*```\n[\w\W]*?",  # Markdown: code blocks
    "(?x)\n              ^(?P<initial>",
)

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
    return next((language for pattern, language in _file_names() if fnmatchcase(name, pattern)), None)


@cache
def _file_names() -> list[tuple[str, str]]:
    """Return the patterns of file names with their languages."""
    patterns = {aliases[0]: names for _, aliases, names, _ in get_all_lexers(plugins=False) if aliases}
    return [(pattern, language) for language in _LANGUAGES for pattern in patterns[language]]


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
    if found.aliases[0] not in _LANGUAGES:
        return None
    # Code blocks in Markdown may be in any language.
    return _without_slow_patterns(found)(stripnl=False, ensurenl=False, handlecodeblocks=False)


def _without_slow_patterns(lexer: type[Lexer]) -> type[Lexer]:
    if not issubclass(lexer, RegexLexer):
        return lexer
    states: dict[str, list[Any]] = lexer()._tokens
    fast = {
        state: [rule for rule in rules if not rule[0].__self__.pattern.startswith(_SLOW_PATTERNS)]
        for state, rules in states.items()
    }
    return new_class(lexer.__name__, (lexer,), exec_body=lambda names: names.update(_tokens=fast))
