"""Run a program so that it ends with its parent, as nice as is asked and, for Postgres, not as root.

`python launch.py --parent PID --signal NAME [--nice N] [--unprivileged FOLDER] -- PROGRAM…` replaces itself
by the program. It is a program of its own because all this has to happen between fork and exec, where a
process that has threads must not run Python. It needs the standard library only.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pwd
import signal
import sys
from pathlib import Path

# From <linux/prctl.h>, <linux/securebits.h>, <linux/capability.h> and <linux/sched.h>.
PR_SET_PDEATHSIG, PR_SET_SECUREBITS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 1, 28, 47, 2
SECBIT_NO_SETUID_FIXUP = 4
CAP_DAC_OVERRIDE, CAP_SETGID, CAP_SETUID, CAP_SETPCAP = 1, 6, 7, 8
CAPABILITY_VERSION_3 = 0x20080522
CLONE_NEWUSER = 0x10000000

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def end_with_parent(parent: int, number: int) -> None:
    """Ask the kernel for a signal when the parent ends, be it by kill -9. Linux only."""
    check(libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0))
    if os.getppid() != parent:
        sys.exit("The parent has ended.")


def leave_root(folder: Path) -> None:
    """Become a user other than root who can still reach the programs and `folder`, and own it.

    Postgres refuses to run as root, and a home such as /root is closed to everybody else. Where root may
    do so, it becomes `nobody` with the one capability that opens files: this works in containers too.
    Elsewhere (say, root of a sandbox that knows no other user) a user namespace shows root as `nobody`.
    """
    nobody = pwd.getpwnam("nobody")
    wanted = 1 << CAP_DAC_OVERRIDE | 1 << CAP_SETGID | 1 << CAP_SETUID | 1 << CAP_SETPCAP
    if sys.platform != "linux" or (permitted_capabilities() & wanted == wanted and is_mapped(nobody)):
        own(folder, nobody.pw_uid, nobody.pw_gid)
        become(nobody)
    else:
        own(folder, os.getuid(), os.getgid())
        appear_as(nobody)


def permitted_capabilities() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapPrm"))


def is_mapped(user: pwd.struct_passwd) -> bool:
    """Whether this user namespace knows the user and its group at all."""
    return covers("/proc/self/uid_map", user.pw_uid) and covers("/proc/self/gid_map", user.pw_gid)


def covers(table: str, number: int) -> bool:
    ranges = (tuple(map(int, line.split())) for line in Path(table).read_text().splitlines())
    return any(first <= number < first + count for first, _, count in ranges)


def own(folder: Path, user: int, group: int) -> None:
    if folder.stat().st_uid == user:
        return
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            os.chown(Path(parent, name), user, group, follow_symlinks=False)
        os.chown(parent, user, group)  # the top comes last: it says that all of it is done


def become(user: pwd.struct_passwd) -> None:
    linux = sys.platform == "linux"
    if linux:
        # Capabilities outlive the change of user, and access(2) heeds them as well: initdb asks it whether
        # the postgres beside it can be run.
        check(libc.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0))
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    if linux:
        bit = 1 << CAP_DAC_OVERRIDE
        header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
        check(libc.capset(header, (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)))
        check(libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0))


def appear_as(user: pwd.struct_passwd) -> None:
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
            leave_root(options.unprivileged)
        except (OSError, KeyError) as error:
            sys.exit(
                f"FATAL: Postgres does not run as root, and leaving root failed ({error}). "
                "Run as an ordinary user, or set DATABASE_URL."
            )
    if sys.platform == "linux":
        # Last, since a change of user clears it.
        end_with_parent(options.parent, signal.Signals[options.signal])
    os.execvp(options.program[0], options.program)  # noqa: S606


if __name__ == "__main__":
    main()
