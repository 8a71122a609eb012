"""The scratch project of the demo: the files in `project/` and generated data. Deterministic."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

PROJECT = Path(__file__).parent / "project"
_KINDS = ("local", "near", "near", "far", "far", "far", "mountain", "island")
_CUSTOMERS = {
    "Alma": "basic",
    "Brio": "business",
    "Cedre": "partner",
    "Delta": "business",
    "Ecru": "basic",
}


def make_project(folder: Path) -> None:
    """Write the project into `folder`, which must be empty or missing."""
    chance = random.Random(20260302)  # noqa: S311
    shutil.copytree(PROJECT, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    ranges = _ranges(chance)
    (folder / "parcelpost" / "zone_table.py").write_text(_zone_table(ranges))
    for name in ("data", "logs"):
        (folder / name).mkdir()
    # Imitate the depot's export: a byte order mark, and decimal commas in some lines.
    (folder / "data" / "shipments.csv").write_text(_shipments(chance, ranges), encoding="utf-8-sig")
    (folder / "logs" / "nightly.log").write_text(_log(chance))


def _ranges(chance: random.Random) -> list[tuple[int, int, str]]:
    """Return ranges of postcodes without gaps. The range of the depot is local."""
    ranges, first = [], 1000
    while first < 98000:
        last = min(first + chance.choice((99, 199, 399, 499, 899)), 97999)
        zone = "local" if first <= 69003 <= last else chance.choice(_KINDS)
        ranges.append((first, last, zone))
        first = last + 1
    return ranges


def _zone_table(ranges: list[tuple[int, int, str]]) -> str:
    rows = "".join(f'    ({first}, {last}, "{zone}"),\n' for first, last, zone in ranges)
    docstring = "First and last postcode of each range, both inclusive, and its zone."
    return f'"""{docstring}"""\n\nZONES = [\n{rows}]\n'


def _shipments(chance: random.Random, ranges: list[tuple[int, int, str]]) -> str:
    rows = ["reference;customer;plan;postcode;weight;length;width;height;returned;day"]
    for number in range(640):
        customer = chance.choices(list(_CUSTOMERS), weights=(8, 5, 3, 2, 1))[0]
        first, last, _ = chance.choice(ranges)
        postcode = chance.choice((first, last, (first + last) // 2))
        weight = f"{chance.uniform(0.1, 25):.2f}"
        if chance.random() < 0.2:
            weight = weight.replace(".", ",")
        sides = [chance.randrange(8, 45) for _ in range(3)]
        returned = "yes" if chance.random() < 0.04 else "no"
        day = f"2026-03-{1 + number * 31 // 640:02}"
        fields = [f"P-{10000 + number}", customer, _CUSTOMERS[customer], f"{postcode:05}", weight]
        rows.append(";".join([*fields, *map(str, sides), returned, day]))
    return "\n".join(rows) + "\n"


def _log(chance: random.Random) -> str:
    lines = []
    for day in range(1, 32):
        stamp = f"2026-03-{day:02} 02:{chance.randrange(60):02}"
        lines.append(f"{stamp} INFO nightly: start, export of {stamp[:10]}")
        for step in range(chance.randrange(18, 30)):
            customer = chance.choice(list(_CUSTOMERS))
            parcels = chance.randrange(3, 40)
            lines.append(f"{stamp} INFO invoice: {customer}: {parcels} parcels, batch {step}, ok")
        if day % 3 == 0:
            number = chance.randrange(10000, 10640)
            lines.append(
                f"{stamp} WARNING zones: P-{number}: no zone for postcode {chance.randrange(1, 97)}999"
            )
        if day % 7 == 0:
            lines.append(f"{stamp} ERROR parsing: line {chance.randrange(2, 600)}: InvalidOperation: '4,37'")
        lines.append(f"{stamp} INFO nightly: done")
    return "\n".join(lines) + "\n"
