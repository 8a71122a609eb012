"""Run a program that ends with its parent, optionally with a niceness and not as root (for Postgres).

`python launch.py --parent PID --signal NAME [--nice N] [--unprivileged FOLDER]… -- PROGRAM…` replaces itself
with the program. It is a separate program because this must happen between fork and exec, where a process
with threads must not run Python. It needs only the standard library.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pwd
import signal
import stat
import sys
import zlib
from contextlib import suppress
from pathlib import Path

# From <linux/prctl.h>, <linux/securebits.h>, <linux/capability.h>, <linux/sched.h> and <linux/mount.h>.
PR_SET_PDEATHSIG, PR_SET_SECUREBITS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 1, 28, 47, 2
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
SECBIT_NO_SETUID_FIXUP = 4
CAP_CHOWN, CAP_DAC_READ_SEARCH, CAP_SETGID, CAP_SETUID, CAP_SETPCAP = 0, 2, 6, 7, 8
CAPABILITY_VERSION_3 = 0x20080522
LAST_CAPABILITY = 63
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 0x1000, 0x4000, 0x40000, 2

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


def lower_priority(nice: int) -> None:
    """Increase the niceness of this process, and that of its session.

    With autogroups, Linux compares the niceness of processes only within a session, and that of the sessions
    between them. Each program has a separate session.
    """
    niceness = os.nice(nice)
    if nice:
        with suppress(OSError):  # there are no autogroups
            Path("/proc/self/autogroup").write_text(str(niceness))


def leave_root(folders: list[Path], program: Path, *, needs_account: bool) -> None:
    """Become a user other than root who owns `folders` and can run the program.

    Postgres refuses to run as root. If possible, root becomes a user that no other process has, without
    capabilities. Otherwise (for example as root of a sandbox without other users) a user namespace maps root
    to `nobody`.
    """
    nobody = pwd.getpwnam("nobody")
    needed = sum(1 << each for each in (CAP_CHOWN, CAP_SETGID, CAP_SETUID, CAP_SETPCAP))
    if sys.platform != "linux" or (
        permitted_capabilities() & needed == needed and is_mapped(nobody.pw_uid, nobody.pw_gid)
    ):
        user, group = (nobody.pw_uid, nobody.pw_gid) if needs_account else user_for(folders[0], nobody)
        for folder in folders:
            change_owner(folder, user, group)
        is_reachable = sys.platform != "linux" or reveal([*folders, *folders_of(program)])
        switch_user(user, group, kept=set() if is_reachable else {CAP_DAC_READ_SEARCH})
    else:
        for folder in folders:
            change_owner(folder, os.getuid(), os.getgid())
        map_user(nobody)


def folders_of(program: Path) -> list[Path]:
    """Return the folders that a program such as site-packages/package/pginstall/bin/postgres reads.

    These are pginstall and site-packages/package.libs, which contains the shared libraries of a wheel.
    """
    install = program.parent.parent
    libraries = install.parent.parent / f"{install.parent.name}.libs"
    return [install, libraries] if libraries.is_dir() else [install]


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


def reveal(folders: list[Path]) -> bool:
    """Make the folders accessible to other users, even below private ones such as /root or the data folder.

    In a mount namespace of this process, an empty file system covers each private folder and contains only
    mounts of `folders`. Returns False if root lacks the right to mount, as in most containers.
    """
    above = {folder: parent for folder in folders if (parent := private_parent(folder))}
    handles: list[int] = []
    covered: list[Path] = []
    mask = os.umask(0o022)
    try:
        if above:
            check(libc.unshare(CLONE_NEWNS))
            mount("none", Path("/"), flags=MS_REC | MS_PRIVATE)
            handles = [os.open(folder, os.O_PATH) for folder in above]
        for parent in set(above.values()):
            mount("none", parent, kind="tmpfs", options="mode=0755,size=1m")
            covered.append(parent)
        for folder, handle in zip(above, handles, strict=True):
            folder.mkdir(parents=True)
            mount(f"/proc/self/fd/{handle}", folder, flags=MS_BIND | MS_REC)
    except OSError:
        for parent in covered:
            libc.umount2(os.fsencode(parent), MNT_DETACH)
        return False
    finally:
        os.umask(mask)
        for handle in handles:
            os.close(handle)
        os.chdir("/")
    return True


def private_parent(folder: Path) -> Path | None:
    """Return the outermost of the folders above that only some users can enter."""
    above = reversed(folder.resolve().parents)
    return next((each for each in above if not each.stat().st_mode & stat.S_IXOTH), None)


def mount(source: str, target: Path, *, kind: str = "", flags: int = 0, options: str = "") -> None:
    check(libc.mount(source.encode(), os.fsencode(target), kind.encode(), flags, options.encode()))


def switch_user(user: int, group: int, *, kept: set[int]) -> None:
    """Become the user. On Linux, only the capabilities `kept` remain, including for later programs."""
    linux = sys.platform == "linux"
    if linux:
        # Keep the capabilities across the change of user, for access(2) as well: initdb uses it to check
        # that it can run the postgres binary.
        check(libc.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0))
        for capability in set(range(LAST_CAPABILITY + 1)) - kept:
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails for those that the kernel does not know
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
    if linux:
        bits = sum(1 << capability for capability in kept)
        header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
        check(libc.capset(header, (ctypes.c_uint32 * 6)(bits, bits, bits, 0, 0, 0)))
        for capability in kept:
            check(libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0))
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
    parser.add_argument("--unprivileged", type=Path, metavar="FOLDER", action="append")
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    lower_priority(options.nice)
    if options.unprivileged and os.geteuid() == 0:
        try:
            # The programs that create the cluster look up the name of their user.
            program = Path(options.program[0])
            creates = "--single" in options.program or program.name == "initdb"
            leave_root(options.unprivileged, program, needs_account=creates)
        except (OSError, KeyError) as error:
            sys.exit(
                f"FATAL: Postgres does not run as root, and changing the user failed ({error}). "
                "Run as an ordinary user, or set DATABASE_URL."
            )
    if sys.platform == "linux":
        # Last, because changing the user clears it.
        end_with_parent(options.parent, signal.Signals[options.signal])
    os.execvp(options.program[0], options.program)  # noqa: S606


if __name__ == "__main__":
    main()
