"""Split a shell command line into pipelines of words, as far as needed to determine its effect.

This is only a lexer: nothing is expanded, and a command line with a syntax error is split as well as
possible. Time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

#: Maximum number of characters to inspect. Longer commands are scripts.
MAX_LENGTH = 4_000

_HEREDOC = re.compile(r"(?<!<)<<-?[ \t]*(?:'(\w+)'|\"(\w+)\"|\\?(\w+))")
#: Explicit characters instead of `\s` and `\d`, which match much more slowly.
_TOKEN = re.compile(
    # Words without special characters, separated by one space.
    r"(?P<plain>[^ \t\r\n|&;<>()'\"\\`$#0-9][^ \t\r\n|&;<>()'\"\\`$]*+"
    r"(?: (?![0-9]++[<>])[^ \t\r\n|&;<>()'\"\\`$#][^ \t\r\n|&;<>()'\"\\`$]*+)*+)"
    r"|(?:[ \t\r]|\\\n)+"
    r"|(?<![^ \t\r\n;&|()])#[^\n]*"
    r"|(?P<redirect>(?<![^ \t\r\n;&|()])[0-9]*(?:<<<|>>|>\||[<>]&|<>|<|>)|&>>?)"
    r"|(?P<end>&&|\|\||;+|\n|&|[()])"
    r"|(?P<pipe>\|)"
    r"|'(?P<single>[^']*)(?:'|$)|\"(?P<double>[^\"\\]*(?:\\.[^\"\\]*)*)(?:\"|$)|\\(?P<escaped>\W)"
    # A backslash before a character of a name separates the names in a path of Windows.
    r"|(?P<piece>\\\w|\$\([^()]*(?:\([^()]*\)[^()]*)*\)|`[^`]*`|[^ \t\r\n|&;<>()'\"\\`$]+|.)",
    re.DOTALL,
)
#: The groups that are part of a word.
_PIECES = frozenset({"single", "double", "escaped", "piece"})
#: A quoted string, a comment, or what separates the simple commands of a line.
_SEPARATOR = re.compile(
    r"'[^']*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\"|\\.|(?<![^ \t\r\n;&|()])#[^\n]*"
    r"|(?P<separator>&&|\|\||;+|\n|(?<![&>|\d])&(?![&>\d]))",
    re.DOTALL,
)
_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_DOUBLE_ESCAPE = re.compile(r"\\([\\\"$`\n])")


@dataclass(slots=True)
class Simple:
    """A simple command: its words without quotes, the files that it reads, and the files that it writes.

    Redirections of errors are left out.
    """

    words: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)


Pipeline = list[Simple]


def pipelines(text: str) -> list[Pipeline]:
    """Return the pipelines of a command line in order. Never fails."""
    simple = Simple()
    found: list[Pipeline] = [[simple]]
    word: str | None = None
    redirect = ""
    for token in _TOKEN.finditer(without_heredocs(text[:MAX_LENGTH])):
        kind = token.lastgroup  # None for spaces and comments
        if kind == "plain":
            first, *others = token[0].split(" ")
            word = first if word is None else word + first
            if others:
                _add(simple, word, redirect)
                redirect = ""
                word = others.pop()
                simple.words += others
            continue
        if kind in _PIECES:
            piece = token[kind] if kind != "double" else _DOUBLE_ESCAPE.sub(r"\1", token[kind])
            word = piece if word is None else word + piece
            continue
        if word is not None:
            _add(simple, word, redirect)
            word, redirect = None, ""
        if kind == "redirect":
            redirect = token[0]
        elif kind == "pipe":
            simple = Simple()
            found[-1].append(simple)
        elif kind == "end":
            simple = Simple()
            found.append([simple])
    if word is not None:
        _add(simple, word, redirect)
    return [pipeline for pipeline in found if any(simple.words or simple.writes for simple in pipeline)]


def _add(simple: Simple, word: str, redirect: str) -> None:
    """Add a word to a command, as the target of the redirection before it if there is one."""
    if not redirect:
        simple.words.append(word)
    elif redirect in ("<", "0<"):
        simple.reads.append(word)
    elif redirect in (">", ">>", ">|", "1>", "1>>", "&>", "&>>"):
        simple.writes.append(word)


def separators(text: str) -> Iterator[re.Match[str]]:
    """Yield what separates the simple commands of a text without here-documents, in the group `separator`."""
    return (found for found in _SEPARATOR.finditer(text) if found["separator"])


def is_absolute(path: str) -> bool:
    """Whether a path of Unix or Windows is absolute."""
    return _ABSOLUTE.match(path) is not None


def has_pipe(command: str) -> bool:
    """Whether a command contains `|` or `||` outside of quotes."""
    return "|" in command and "|" in _QUOTED.sub("", command[:MAX_LENGTH])


def without_heredocs(text: str) -> str:
    """Remove the here-documents of a command line, with their markers."""
    if "<<" not in text:
        return text
    lines = text.split("\n")
    bare = list(map(str.strip, lines))
    kept: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        ends = [next(filter(None, found)) for found in _HEREDOC.findall(line)] if "<<" in line else ()
        kept.append(_HEREDOC.sub(" ", line) if ends else line)
        for end in ends:
            at = bare.index(end, at) + 1 if end in bare[at:] else len(lines)
    return "\n".join(kept)
