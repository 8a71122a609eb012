"""Detect passwords in the arguments of programs: `curl -u user:…`, `mysql -p…`, `sshpass -p …`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from redaction.shape import is_typed_secret
from redaction.spans import Rule, Span, compiled

#: A quoted or bare argument, of which the secret is one group.
_ARGUMENT = r"""(?:"([^"\n]{3,200})"|'([^'\n]{3,200})'|([^\s"'\\;|&<>]{3,200}))"""
_USER_ARGUMENT = r"""(?:"[^":\n]{0,100}[:%]([^"\n]{3,200})"|'[^':\n]{0,100}[:%]([^'\n]{3,200})'|[^\s"':%]{1,100}[:%]([^\s"'\\;|&]{3,200}))"""

#: Maximum characters of a command.
_LONGEST_COMMAND = 600
_LINE_END = re.compile(r"(?<!\\)\n")

_URL = re.compile(r"[a-zA-Z]+://|//")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Programs, the pattern of the option and its argument, and an anchor for raw JSON."""

    programs: str
    option: str
    anchor: str


COMMANDS = (
    Command(
        programs="curl|wget|https?|xh|smbclient|rpcclient|smbmap|netexec|nxc",
        option=rf"(?:-[sSkLfiv]{{0,6}}u|-U|-a|--user|--auth|--proxy-user)(?:[ =]|[ ]*(?=[\"'])|(?=\w+:)){_USER_ARGUMENT}",
        anchor=r"[ \"'](?:-[sSkLfiv]*u|-U)[ =\\\"']*[\w.@+-]*[:%][^\s/:]|[ \"'](?:-a|--user|--auth|--proxy-user)[ =\\\"']+[\w.@+-]*[:%][^\s/:]",
    ),
    Command(
        programs="mysql(?:dump|admin|import|show|check|sh)?|mariadb(?:-dump|-admin)?",
        option=rf"-p(?=[^\s]){_ARGUMENT}",
        anchor=r"(?:mysql[a-z]*|mariadb[a-z-]*) -",
    ),
    Command(
        programs="sshpass|mongo(?:sh|dump|restore|export|import)?|docker|podman|buildah|skopeo|crane|oras|helm|nerdctl"
        "|az|oc|cf|argocd|heroku|influx|rabbitmqadmin|clickhouse-client|ansible-vault|twine",
        option=rf"(?:-p|-pw|--pass|--dest-creds[ =][^\s:]+:)[ =]?{_ARGUMENT}",
        anchor=r"(?:sshpass|influx|rabbitmqadmin|clickhouse-client|mongo(?:sh|dump|restore|export|import)?) [^\\]*-|"
        r"(?:docker|podman|buildah|skopeo|crane|oras|helm|nerdctl|registry|az|oc|cf|argocd|heroku|acr) login|twine upload|creds[ =]",
    ),
    Command(
        programs="sqlcmd|bcp|osql|isql|unzip|zip|ipmitool|snmpwalk|snmpget",
        option=rf"(?:-P|-A|-X)[ =]?{_ARGUMENT}",
        anchor=r"(?:sqlcmd|bcp|osql|isql|zip|ipmitool|snmpwalk|snmpget) -",
    ),
    Command(
        programs="ldapsearch|ldapmodify|ldapadd|ldapdelete|ldapwhoami|ldappasswd",
        option=rf"-w[ ]?{_ARGUMENT}",
        anchor=r"ldap(?:search|modify|add|delete|whoami|passwd) -",
    ),
    Command(
        programs="redis-cli|valkey-cli|keydb-cli",
        option=rf"-a[ ]?{_ARGUMENT}",
        anchor=r"(?:redis|valkey|keydb)-cli -",
    ),
    Command(
        programs="plink|pscp|psftp|winscp",
        option=rf"-pw[ ]{_ARGUMENT}",
        anchor=r" -pw ",
    ),
    Command(
        programs="7z[ar]?|rar|unrar",
        option=rf"-h?p(?=[^\s]){_ARGUMENT}",
        anchor=r"(?:7z[ar]?|rar) [a-z]* ?-",
    ),
    Command(
        programs="openssl|keytool|jarsigner|apksigner",
        option=rf"(?:-(?:pass|passin|passout)[ ]+pass:|-(?:store|key|srcstore|deststore|new)pass[ ]+|--ks-pass[ ]+pass:)"
        rf"{_ARGUMENT}",
        anchor=r"pass(?:in|out)? +pass:|(?:store|key|new)pass +",
    ),
    Command(
        programs="htpasswd",
        option=rf"-[a-zA-Z0-9]*b[a-zA-Z0-9]*[ ]+(?:[^\s]+[ ]+){{1,2}}{_ARGUMENT}(?=\s|\Z|[\"'])",
        anchor=r"htpasswd -",
    ),
    Command(
        programs="rabbitmqctl",
        option=rf"(?:add_user|change_password|authenticate_user)[ ]+[^\s]+[ ]+{_ARGUMENT}",
        anchor=r"rabbitmqctl ",
    ),
    Command(
        programs="xfreerdp|rdesktop|wfreerdp|cmdkey|schtasks|psexec",
        option=rf"(?:/p:|/pass:|/rp[ ]|-p[ ]){_ARGUMENT}",
        anchor=r"(?:xfreerdp|rdesktop|cmdkey|schtasks|psexec)(?:\.exe)? ",
    ),
    Command(
        programs="net use|net user",
        option=rf"(?:\\\\[^\s]+|[A-Z*]:|user)[ ]+(?:\\\\[^\s]+[ ]+|[\w.-]+[ ]+)?{_ARGUMENT}(?=[ ]+/)",
        anchor=r"net user? ",
    ),
    Command(
        programs="echo|printf",
        option=r"(?:-n[ ]+)?(?:\"(?:\w+:)?([^\"\n]{4,200})\"|'(?:\w+:)?([^'\n]{4,200})'|([^\s\"'|]{4,200}))[ ]*\|[ ]*"
        r"(?:sudo[ ]+(?:-\w+[ ]+)*(?:-S|--stdin|chpasswd)|chpasswd|passwd[ ]+--stdin|(?:docker|podman|helm|gh|crane)[ ][^|\n]{0,80}(?:--password-stdin|--with-token))",
        anchor=r"\| *(?:sudo +(?:-[a-zA-Z]+ +)*(?:-S|--stdin|chpasswd)|chpasswd|passwd|(?:docker|podman|helm|gh|crane) )",
    ),
)


def command_rules() -> Iterator[Rule]:
    for command, find in zip(COMMANDS, FINDERS, strict=True):
        yield Rule(kind="command-password", anchor=command.anchor, find=find)


class _Finder:
    def __init__(self, command: Command) -> None:
        self._programs = compiled(rf"(?:^|[^.\w-])(?:{command.programs})(?:\.exe)?[ ]")
        self._option = re.compile(rf"(?<!\S)(?:{command.option})")

    def __call__(self, text: str) -> Iterator[Span]:
        starts = [match.end() for match in self._programs.finditer(text)]
        for start, following in pairwise([*starts, len(text)]):
            stop = min(following, start + _LONGEST_COMMAND)
            line_end = _LINE_END.search(text, start, stop)
            for match in self._option.finditer(text, start, line_end.start() if line_end else stop):
                group = match.lastindex or 0
                if is_typed_secret(match[group]) and not _URL.match(match[group]):
                    yield match.span(group)


#: For each command, a function that finds the passwords in a text.
FINDERS = tuple(_Finder(command) for command in COMMANDS)
