"""Download the browser libraries that `versions.json` pins, by npm package name.

    python static/vendor/update.py          # download and verify the pinned checksums
    python static/vendor/update.py --pin    # after a version change: write the new checksums

Needs `npm` (for `npm pack` only). The files are committed: running contextapp needs neither Node nor this script.
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
    """Return the contents of files of an npm package."""
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
    """Write the files of a package. Returns a message for each file with an unexpected checksum."""
    problems = []
    for path, data in package_files(name, pin["version"], list(pin["files"])).items():
        found = sha256(data)
        if write_pin:
            pin["files"][path] = found
        elif pin["files"][path] != found:
            problems.append(f"{name}@{pin['version']} {path}: {found} does not match the pinned checksum")
            continue
        target = HERE / pin["folder"] / Path(path).name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pin", action="store_true", help="write the checksums of the downloaded files")
    write_pin = parser.parse_args().pin
    pins = json.loads(PINS.read_text())
    problems = [line for name in pins for line in package_update(name, pins[name], write_pin=write_pin)]
    if write_pin:
        PINS.write_text(json.dumps(pins, indent=2) + "\n")
    sys.stderr.writelines(f"{line}\n" for line in problems)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
