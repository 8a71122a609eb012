"""Determine the files that a shell command shows, for example `cat a b` or `git show HEAD:a | head`.

A command shows a file if a program that prints files, or lines of them, is the last in a pipeline except for
programs that filter text. `cat a | python check.py` shows the script's output, and `pytest | tail` shows no
file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from posixpath import normpath
from typing import NamedTuple

from compaction.shell.programs import (
    FILTERS,
    GIT_PRINTS,
    GIT_VALUED,
    GIVES_PATHS,
    GIVES_SCRIPT,
    KEYWORDS,
    PATCH,
    PROGRAMS,
    QUIET,
    SHELLS,
    WRAPPERS,
    Program,
)
from compaction.shell.syntax import MAX_LENGTH, Pipeline, Simple, is_absolute, pipelines, without_heredocs


class Shown(NamedTuple):
    """The files that a command shows. `paths` are the ones that it names.

    `only`: the rest of the command prints little. `is_search`: it shows lines that match a pattern.
    `is_whole`: it prints one file completely.
    """

    paths: tuple[str, ...] = ()
    only: bool = True
    is_search: bool = False
    is_whole: bool = False


class Use(NamedTuple):
    """The files that a command shows, and the file that it changes, or "" if there is none."""

    shown: Shown | None = None
    edited: str = ""


_Placed = tuple[Pipeline, str]  #: a pipeline and its folder
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_NOT_A_FILE = re.compile(r"/dev/(?:null|stderr|stdout|tty|fd/\d+)|&?\d|-")
_INLINE_SCRIPT = re.compile(r"-\w*c")
_RECURSIVE = re.compile(r"-\w*[rR]\w*|--recursive")
_WORD_BYTES = bytes(c if c < 128 and (chr(c).isalnum() or chr(c) in "_-") else 32 for c in range(256))
#: A command that names none of these programs shows no file. This check is much faster than parsing.
_READERS = frozenset(name.encode() for name in PROGRAMS)
_GIT_READER = re.compile(
    rf"git(?<![a-z0-9_-]git)[\s\\\"']+(?:-|{'|'.join(sorted(GIT_PRINTS - {'log'}))}"
    r"|log\b.*-(?:[pu]\b|-patch))",
    re.DOTALL,
)
#: Uses of these programs that show no file: filters without a path, and `cat > a`.
_FILTER = re.compile(
    r"\| *(?:(?:head|tail)(?: +-(?:[nc] *)?[0-9]+)?"
    r"|grep(?: +-[EFcinoqvw]+)* +(?:[\w./:=][\w./:=-]*|'[^'\"\\;&\n]*'|\"[^\"'\\$`;&\n]*\")"
    r") *(?=$|[|;&\n])"
)
_WRITING_CAT = re.compile(r"cat *>>? *(?!/dev/)[\w./-]+ *(?=$|[|;&\n])")
_PRINTS_LITTLE = QUIET | FILTERS
#: The programs that may show files.
_SHOWING = frozenset({*PROGRAMS, *SHELLS, *WRAPPERS, "git"})
_MAX_DEPTH = 3


def file_use(command: str) -> Use:
    """Return the files that a command shows, and the file that it changes with `sed -i`."""
    text = without_heredocs(command[:MAX_LENGTH])
    if not _may_read(text):
        return Use()
    found = list(_in_folders(text))
    return Use(shown=_shown(found, _MAX_DEPTH), edited=_edited(found) if "sed" in command else "")


def _may_read(text: str) -> bool:
    """Whether a command names a program that prints files, and may use it to show one."""
    lower = text.lower()
    if "git" in lower and _GIT_READER.search(lower):
        return True
    if not _names_reader(lower):
        return False
    others = _FILTER.sub("|", lower) if "|" in lower else lower
    if "cat" in others and ">" in others:
        others = _WRITING_CAT.sub(" ", others)
    return others == lower or _names_reader(others)


def _names_reader(text: str) -> bool:
    return not _READERS.isdisjoint(text.encode("utf-8", "replace").translate(_WORD_BYTES).split())


def _edited(pipelines: Sequence[_Placed]) -> str:
    for pipeline, folder in pipelines:
        words = _bare(pipeline[0].words)
        if _edits_in_place(words):
            paths = [path for path in _operands(words, PROGRAMS["sed"]) if path]
            return within(folder, paths[-1]) if paths else ""
    return ""


def _shown(pipelines: Sequence[_Placed], depth: int) -> Shown | None:
    found: list[Shown] = []
    others, is_alone = False, True
    for pipeline, folder in pipelines:
        shown = _pipeline_shown(pipeline, depth)
        if shown is not None:
            shown = shown._replace(paths=tuple(within(folder, path) for path in shown.paths))
            found.append(shown)
        elif not _is_quiet(pipeline):
            others = True
        elif not _changes_folder(pipeline):
            is_alone = False
    if not found:
        return None
    return Shown(
        paths=tuple(dict.fromkeys(path for shown in found for path in shown.paths)),
        only=not others and all(shown.only for shown in found),
        is_search=all(shown.is_search for shown in found),
        is_whole=len(found) == 1 and found[0].is_whole and is_alone and not others,
    )


def _in_folders(command: str) -> Iterator[_Placed]:
    """Yield the pipelines of a command with their folders, relative to the first one.

    An absolute folder counts as the first one, because agents specify it with every command.
    """
    folder = ""
    for pipeline in pipelines(command):
        yield pipeline, folder
        if _changes_folder(pipeline):
            words = (word for word in pipeline[0].words[1:] if not word.startswith("-"))
            folder = changed_folder(folder, next(words, "~"))


def _changes_folder(pipeline: Pipeline) -> bool:
    words = pipeline[0].words
    return bool(words) and words[0] in ("cd", "pushd")


def changed_folder(folder: str, to: str) -> str:
    """Return the folder after `cd`. An absolute one is taken for that of the session, which is ""."""
    return "" if is_absolute(to) or to.startswith(("~", "$")) else within(folder, to)


def within(folder: str, path: str) -> str:
    """Return the path of a file that a command names in a folder."""
    if is_absolute(path) or path.startswith(("~", "$")):
        return path
    joined = normpath(f"{folder}/{path}" if folder else path)
    return "" if joined == "." else joined


def _is_quiet(pipeline: Pipeline) -> bool:
    return all(
        _program_name(words[0]) in _PRINTS_LITTLE for simple in pipeline if (words := _bare(simple.words))
    )


def _pipeline_shown(pipeline: Pipeline, depth: int) -> Shown | None:
    shown: Shown | None = None
    for simple in pipeline:
        words = _bare(simple.words)
        if not words:
            continue
        latest = _simple_shown(words, simple, depth, is_first=simple is pipeline[0])
        if latest is not None:
            shown = latest
        elif shown is not None:
            shown = shown._replace(is_whole=False) if _is_filter(words) else None
        if simple.writes and not all(map(_NOT_A_FILE.fullmatch, simple.writes)):
            shown = None
    return shown


def _is_filter(words: Sequence[str]) -> bool:
    return _program_name(words[0]).lower() in FILTERS or words[1:3] == ["-m", "json.tool"]


def _simple_shown(words: list[str], simple: Simple, depth: int, *, is_first: bool) -> Shown | None:
    name = _program_name(words[0]).lower()
    if name not in _SHOWING:
        return None
    if name in SHELLS:
        return _script_shown(words, depth)
    if name in WRAPPERS:
        return _wrapped_shown(name, words, simple, depth)
    if name == "git":
        return _git_shown(words)
    program = PROGRAMS.get(name)
    if program is None or _edits_in_place(words):
        return None
    paths = [path for path in (*_operands(words, program), *simple.reads) if not _NOT_A_FILE.fullmatch(path)]
    if not paths and not (program.searches and _searches_folder(program, words, is_first)):
        return None
    is_whole = program.whole and len(paths) == 1 and not any(word.startswith("-r") for word in words[1:])
    return Shown(paths=tuple(paths), is_search=program.searches, is_whole=is_whole)


def _wrapped_shown(name: str, words: Sequence[str], simple: Simple, depth: int) -> Shown | None:
    """Return the files shown by a wrapped command, as in `sudo cat a` or `find . -exec cat {} +`."""
    rest = next((list(words[i:]) for i, word in enumerate(words) if i and _is_reader(word)), None)
    if not rest or not depth or _edits_in_place(rest):
        return None
    if name not in GIVES_PATHS:
        shown = _simple_shown(rest, simple, depth - 1, is_first=True)
        return shown._replace(is_whole=False) if shown else None
    program = PROGRAMS.get(_program_name(rest[0]).lower())
    return Shown(is_search=program is not None and program.searches)


def _script_shown(words: Sequence[str], depth: int) -> Shown | None:
    """Return the files shown by an inline script, as in `bash -lc "cat a"`."""
    for option, value in pairwise(words):
        if _INLINE_SCRIPT.fullmatch(option):
            return _shown(list(_in_folders(value)), depth - 1) if depth else None
    return None


def _git_shown(words: Sequence[str]) -> Shown | None:
    rest = iter(words[1:])
    for word in rest:
        if word in GIT_VALUED:
            next(rest, None)
        elif not word.startswith("-"):
            break
    else:
        return None
    options = list(rest)
    if word not in GIT_PRINTS or (word == "log" and not PATCH.intersection(options)):
        return None
    if "--stat" in options or "--name-only" in options:
        return None
    paths = [path for option in options if (path := option.partition(":")[2]) and not option.startswith("-")]
    return Shown(paths=tuple(paths), is_search=word == "grep")


def _program_name(word: str) -> str:
    return word.rpartition("/")[2]


def _is_reader(word: str) -> bool:
    name = _program_name(word).lower()
    return name in PROGRAMS or name in SHELLS


def _edits_in_place(words: Sequence[str]) -> bool:
    is_sed = _program_name(words[0]) == "sed" if words else False
    return is_sed and any(word.startswith(("-i", "--in-place")) for word in words)


def _searches_folder(program: Program, words: Sequence[str], is_first: bool) -> bool:
    """Whether a search without a path searches the folder instead of its input."""
    if program.recursive:
        return is_first
    return any(map(_RECURSIVE.fullmatch, words))


def _bare(words: list[str]) -> list[str]:
    """Return the words of a command without leading keywords or assignments."""
    start = 0
    while start < len(words) and (words[start] in KEYWORDS or _ASSIGNMENT.match(words[start])):
        start += 1
    return words[start:]


def _operands(words: Sequence[str], program: Program) -> Iterator[str]:
    """Yield the operands of a command that are files."""
    needs_script = program.scripted
    rest = iter(words[1:])
    for word in rest:
        if word == "--":
            break
        if len(word) > 1 and word[0] in "-+":
            if word.partition("=")[0] in GIVES_SCRIPT and program.scripted:
                needs_script = False
            if word in program.valued:
                next(rest, None)
        elif needs_script:
            needs_script = False
        elif word not in ("{}", ";", "+"):
            yield word
    for word in rest:
        if needs_script:
            needs_script = False
        else:
            yield word
