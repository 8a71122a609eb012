"""Split a shell command line into pipelines of words, as far as needed to determine its effect.

This is only a lexer: nothing is expanded, and a command line with a syntax error is split as well as
possible. Time is linear in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: Maximum number of characters to inspect. Longer commands are scripts.
MAX_LENGTH = 4_000

_HEREDOC = re.compile(r"(?<!<)<<-?[ \t]*(?:'(\w+)'|\"(\w+)\"|\\?(\w+))")
_TOKEN = re.compile(
    r"(?P<space>(?:[ \t\r]|\\\n)+)"
    r"|(?P<comment>(?<![^\s;&|()])#[^\n]*)"
    r"|(?P<redirect>(?<![^\s;&|()])\d*(?:<<<|>>|>\||[<>]&|<>|<|>)|&>>?)"
    r"|(?P<end>&&|\|\||;+|\n|&|[()])"
    r"|(?P<pipe>\|)"
    r"|(?P<piece>'(?P<single>[^']*)(?:'|$)|\"(?P<double>(?:\\.|[^\"\\])*)(?:\"|$)"
    r"|\\(?P<escaped>.)|\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`|[^\s|&;<>()'\"\\`$]+|.)",
    re.DOTALL,
)
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
    found: list[Pipeline] = [[Simple()]]
    word: list[str] | None = None
    redirect = ""
    for token in _TOKEN.finditer(_without_heredocs(text[:MAX_LENGTH])):
        if token.lastgroup == "piece":
            word = [*(word or ()), _unquoted(token)]
            continue
        if word is not None:
            _add(found[-1][-1], "".join(word), redirect)
            word, redirect = None, ""
        if token.lastgroup == "redirect":
            redirect = token[0]
        elif token.lastgroup == "pipe":
            found[-1].append(Simple())
        elif token.lastgroup == "end":
            found.append([Simple()])
    if word is not None:
        _add(found[-1][-1], "".join(word), redirect)
    return [pipeline for pipeline in found if any(simple.words or simple.writes for simple in pipeline)]


def _unquoted(token: re.Match[str]) -> str:
    if token["single"] is not None:
        return token["single"]
    if token["double"] is not None:
        return _DOUBLE_ESCAPE.sub(r"\1", token["double"])
    return token["escaped"] if token["escaped"] is not None else token[0]


def _add(simple: Simple, word: str, redirect: str) -> None:
    """Add a word to a command, as the target of the redirection before it if there is one."""
    if not redirect:
        simple.words.append(word)
    elif redirect in ("<", "0<"):
        simple.reads.append(word)
    elif redirect in (">", ">>", ">|", "1>", "1>>", "&>", "&>>"):
        simple.writes.append(word)


def _without_heredocs(text: str) -> str:
    """Remove the here-documents of a command line, with their markers."""
    if "<<" not in text:
        return text
    kept: list[str] = []
    ends: list[str] = []
    for line in text.split("\n"):
        if ends:
            if line.strip() == ends[0]:
                ends.pop(0)
            continue
        ends = [next(filter(None, found)) for found in _HEREDOC.findall(line)]
        kept.append(_HEREDOC.sub(" ", line) if ends else line)
    return "\n".join(kept)
