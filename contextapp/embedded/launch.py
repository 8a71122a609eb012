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
    """Request a signal when the parent ends, even if it is killed. Linux only."""
    check(libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0))
    if os.getppid() != parent:
        sys.exit("The parent has ended.")


def leave_root(folder: Path) -> None:
    """Become a user other than root who owns `folder` and can access the programs.

    Postgres refuses to run as root, and other users cannot read folders such as /root. If possible, root
    becomes `nobody` with the capability to open all files, which works in containers too. Otherwise (for
    example as root of a sandbox without other users) a user namespace maps root to `nobody`.
    """
    nobody = pwd.getpwnam("nobody")
    needed = 1 << CAP_DAC_OVERRIDE | 1 << CAP_SETGID | 1 << CAP_SETUID | 1 << CAP_SETPCAP
    if sys.platform != "linux" or (permitted_capabilities() & needed == needed and is_mapped(nobody)):
        change_owner(folder, nobody.pw_uid, nobody.pw_gid)
        switch_user(nobody)
    else:
        change_owner(folder, os.getuid(), os.getgid())
        map_user(nobody)


def permitted_capabilities() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapPrm"))


def is_mapped(user: pwd.struct_passwd) -> bool:
    """Return whether this user namespace contains the user and its group."""
    return covers("/proc/self/uid_map", user.pw_uid) and covers("/proc/self/gid_map", user.pw_gid)


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


def switch_user(user: pwd.struct_passwd) -> None:
    linux = sys.platform == "linux"
    if linux:
        # Keep the capabilities across the change of user, for access(2) as well: initdb uses it to check
        # that it can run the postgres binary.
        check(libc.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0))
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    if linux:
        bit = 1 << CAP_DAC_OVERRIDE
        header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
        check(libc.capset(header, (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)))
        check(libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0))


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
            leave_root(options.unprivileged)
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
