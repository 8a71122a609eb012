"""Fetches the browser libraries that `versions.json` pins, by npm package name.

    python static/vendor/update.py          # fetch and check against the pinned sums
    python static/vendor/update.py --pin    # after a change of version: write the new sums

Needs `npm` (for `npm pack` only); the product itself needs no Node. The files are committed, so nobody who
only runs it needs this script.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PINS = HERE / "versions.json"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def package_files(name: str, version: str, wanted: list[str]) -> dict[str, bytes]:
    """The contents of the wanted files of one npm package."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(  # noqa: S603
            ["npm", "pack", "--silent", "--pack-destination", folder, f"{name}@{version}"],  # noqa: S607
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as tar:
            return {path: member_bytes(tar, f"package/{path}") for path in wanted}


def member_bytes(tar: tarfile.TarFile, name: str) -> bytes:
    member = tar.extractfile(name)
    if member is None:
        raise FileNotFoundError(name)
    return member.read()


def package_update(name: str, pin: dict[str, Any], *, write_pin: bool) -> list[str]:
    """Writes the files of one package; returns a line for each whose sum is not the pinned one."""
    problems = []
    for path, data in package_files(name, pin["version"], list(pin["files"])).items():
        found = sha256(data)
        if write_pin:
            pin["files"][path] = found
        elif pin["files"][path] != found:
            problems.append(f"{name}@{pin['version']} {path}: {found} is not the pinned sum")
            continue
        target = HERE / pin["folder"] / Path(path).name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pin", action="store_true", help="write the sums of what was fetched")
    write_pin = parser.parse_args().pin
    pins = json.loads(PINS.read_text())
    problems = [line for name in pins for line in package_update(name, pins[name], write_pin=write_pin)]
    if write_pin:
        PINS.write_text(json.dumps(pins, indent=2) + "\n")
    sys.stderr.writelines(f"{line}\n" for line in problems)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
