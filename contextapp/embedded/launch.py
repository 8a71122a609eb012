"""Run a program that ends with its parent, optionally with a niceness and not as root (for Postgres).

`python launch.py --parent PID --signal NAME [--nice N] [--unprivileged FOLDER] -- PROGRAM…` replaces itself
with the program. It is a separate program because this must happen between fork and exec, where a process
with threads must not run Python. It needs only the standard library.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pwd
import signal
import sys
import zlib
from contextlib import suppress
from pathlib import Path

# From <linux/prctl.h>, <linux/securebits.h>, <linux/capability.h> and <linux/sched.h>.
PR_SET_PDEATHSIG, PR_SET_SECUREBITS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 1, 28, 47, 2
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
SECBIT_NO_SETUID_FIXUP = 4
CAP_DAC_OVERRIDE, CAP_SETGID, CAP_SETUID, CAP_SETPCAP = 1, 6, 7, 8
CAPABILITY_VERSION_3 = 0x20080522
LAST_CAPABILITY = 63
CLONE_NEWUSER = 0x10000000

#: User ids that systemd reserves for services without an account. Each instance uses one.
FREE_USERS = range(61184, 65520)

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def end_with_parent(parent: int, number: int) -> None:
    """Request a signal when the parent ends, even if it is killed. Linux only."""
    check(libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0))
    if os.getppid() != parent:
        sys.exit("The parent has ended.")


def leave_root(folder: Path, *, needs_account: bool) -> None:
    """Become a user other than root who owns `folder` and can access the programs.

    Postgres refuses to run as root, and other users cannot read folders such as /root. If possible, root
    becomes a user that no other process has, with the capability to open all files and no other, which works
    in containers too. Otherwise (for example as root of a sandbox without other users) a user namespace maps
    root to `nobody`.
    """
    nobody = pwd.getpwnam("nobody")
    needed = 1 << CAP_DAC_OVERRIDE | 1 << CAP_SETGID | 1 << CAP_SETUID | 1 << CAP_SETPCAP
    if sys.platform != "linux" or (
        permitted_capabilities() & needed == needed and is_mapped(nobody.pw_uid, nobody.pw_gid)
    ):
        user, group = (nobody.pw_uid, nobody.pw_gid) if needs_account else user_for(folder, nobody)
        change_owner(folder, user, group)
        switch_user(user, group)
    else:
        change_owner(folder, os.getuid(), os.getgid())
        map_user(nobody)


def permitted_capabilities() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapPrm"))


def user_for(folder: Path, nobody: pwd.struct_passwd) -> tuple[int, int]:
    """Return a user and group for the folder: its owner, or an id without an account or a process.

    Without /proc, or if this user namespace has no free id, `nobody`, which other programs may also use.
    """
    owner = folder.stat().st_uid
    if owner in FREE_USERS:
        return owner, owner
    if sys.platform == "linux" and is_mapped(FREE_USERS.start, FREE_USERS[-1]):
        taken = {user.pw_uid for user in pwd.getpwall()} | running_users()
        first = zlib.crc32(os.fsencode(folder)) % len(FREE_USERS)
        for user in (*FREE_USERS[first:], *FREE_USERS[:first]):
            if user not in taken:
                return user, user
    print("Postgres runs as `nobody`, because no unused user id is available.", file=sys.stderr)  # noqa: T201
    return nobody.pw_uid, nobody.pw_gid


def running_users() -> set[int]:
    found = set()
    for entry in os.scandir("/proc"):
        with suppress(FileNotFoundError):
            if entry.name.isdecimal():
                found.add(entry.stat().st_uid)
    return found


def is_mapped(*numbers: int) -> bool:
    """Return whether this user namespace contains users and groups with these ids."""
    return all(
        covers(f"/proc/self/{table}", number) for table in ("uid_map", "gid_map") for number in numbers
    )


def covers(table: str, number: int) -> bool:
    ranges = (tuple(map(int, line.split())) for line in Path(table).read_text().splitlines())
    return any(first <= number < first + count for first, _, count in ranges)


def change_owner(folder: Path, user: int, group: int) -> None:
    if folder.stat().st_uid == user:
        return
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            os.chown(Path(parent, name), user, group, follow_symlinks=False)
        os.chown(parent, user, group)  # last, because the folder's owner indicates that this step is complete


def switch_user(user: int, group: int) -> None:
    """Become the user. On Linux, only the capability to open all files remains, also for later programs."""
    linux = sys.platform == "linux"
    if linux:
        # Keep the capabilities across the change of user, for access(2) as well: initdb uses it to check
        # that it can run the postgres binary.
        check(libc.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0))
        for capability in range(LAST_CAPABILITY + 1):
            if capability != CAP_DAC_OVERRIDE:
                libc.prctl(
                    PR_CAPBSET_DROP, capability, 0, 0, 0
                )  # fails for those that the kernel does not know
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
    if linux:
        bit = 1 << CAP_DAC_OVERRIDE
        header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
        check(libc.capset(header, (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)))
        check(libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0))
        check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def map_user(user: pwd.struct_passwd) -> None:
    uid, gid = os.getuid(), os.getgid()
    check(libc.unshare(CLONE_NEWUSER))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user.pw_uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{user.pw_gid} {gid} 1")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--signal", required=True)
    parser.add_argument("--nice", type=int, default=0)
    parser.add_argument("--unprivileged", type=Path, metavar="FOLDER")
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    os.nice(options.nice)
    if options.unprivileged and os.geteuid() == 0:
        try:
            # The programs that create the cluster look up the name of their user.
            creates = "--single" in options.program or Path(options.program[0]).name == "initdb"
            leave_root(options.unprivileged, needs_account=creates)
        except (OSError, KeyError) as error:
            sys.exit(
                f"FATAL: Postgres does not run as root, and leaving root failed ({error}). "
                "Run as an ordinary user, or set DATABASE_URL."
            )
    if sys.platform == "linux":
        # Last, because changing the user clears it.
        end_with_parent(options.parent, signal.Signals[options.signal])
    os.execvp(options.program[0], options.program)  # noqa: S606


if __name__ == "__main__":
    main()
