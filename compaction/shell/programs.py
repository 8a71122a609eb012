"""The programs that print files, and the syntax of their operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """A program that prints its operands.

    Options in `valued` take the next word as their value. `scripted`: the first operand is a script or a
    pattern. `searches`: it prints matching lines. `recursive`: without a path, it searches the folder.
    `whole`: it prints the whole file.
    """

    valued: frozenset[str] = frozenset()
    scripted: bool = False
    searches: bool = False
    recursive: bool = False
    whole: bool = False


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _program(valued: str = "", **facts: bool) -> Program:
    return Program(_names(valued), **facts)


def _search(valued: str, *, recursive: bool = False) -> Program:
    return _program(valued, scripted=True, searches=True, recursive=recursive)


_BAT = _program("-r -l -H --line-range --language --style --theme", whole=True)
_GET_CONTENT = _program("-TotalCount -Tail -Encoding -Head -totalcount -tail", whole=True)
_GREP = _search("-e -f -m -A -B -C -d -D --include --exclude --exclude-dir")
_RG = _search("-e -f -m -A -B -C -g -t -T -j -M -r --glob --type", recursive=True)

PROGRAMS: Mapping[str, Program] = {
    **dict.fromkeys(_names("cat tac less more most"), _program(whole=True)),
    **dict.fromkeys(_names("bat batcat"), _BAT),
    "nl": _program("-b -d -f -h -i -l -n -s -v -w", whole=True),
    **dict.fromkeys(_names("get-content gc"), _GET_CONTENT),
    **dict.fromkeys(_names("head tail"), _program("-n -c --lines --bytes")),
    **dict.fromkeys(_names("pr fold expand column cut sort uniq"), _program("-w -d -f -c -s -t -k")),
    **dict.fromkeys(_names("strings xxd hexdump od diff zcat"), _program("-l -s -n -N -j -t -A -c")),
    "sed": _program("-e -f -l --expression --file", scripted=True),
    **dict.fromkeys(_names("awk gawk mawk nawk"), _program("-F -v -f", scripted=True)),
    **dict.fromkeys(_names("jq yq"), _program("-f --indent", scripted=True)),
    **dict.fromkeys(_names("grep egrep fgrep zgrep"), _GREP),
    **dict.fromkeys(_names("rg ag ack"), _RG),
    "select-string": _search("-Pattern -Context -pattern -context"),
}

#: Options that specify the script or the pattern, so that every operand is a file.
GIVES_SCRIPT = _names("-e -f --expression --file --regexp -pattern -Pattern")
GIT_PRINTS = _names("show diff blame annotate cat-file grep log")
GIT_VALUED = _names("-C -c --git-dir --work-tree")
PATCH = _names("-p -u --patch")  #: options with which `git log` prints the changes

#: Filters: a pipeline that continues with these still shows the file.
FILTERS = frozenset({*PROGRAMS, "tr", "rev", "tee", "xargs"})
#: Commands that may accompany reads in a command line that still counts as a read.
QUIET = _names(
    "cd pushd popd echo printf pwd ls true false : set shopt export source . test [ [[ find fd tree file stat"
    " sleep wc which date basename dirname realpath for case done fi esac in select read"
)
#: Programs that run the command in their arguments.
WRAPPERS = _names(
    "sudo time command env nohup nice timeout stdbuf builtin exec xargs parallel watch docker podman kubectl"
    " ssh docker-compose find fd"
)
#: Programs that supply the names of the files that the command reads.
GIVES_PATHS = _names("xargs parallel find fd")
KEYWORDS = _names("do then else elif if while until { } !")
SHELLS = _names("bash sh zsh dash ksh")
