"""The warehouse's export: one shipment a line, separated by semicolons."""

import csv
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from parcelpost.rates import Parcel


class BadRow(ValueError):
    """A row that cannot be read; says which one."""


@dataclass(frozen=True)
class Shipment:
    reference: str
    customer: str
    plan: str
    postcode: str
    parcel: Parcel
    returned: bool
    day: str


def read(path: Path) -> list[Shipment]:
    """All shipments of the file. Raises BadRow."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream, delimiter=";")
        return [shipment(row, number) for number, row in enumerate(rows, start=2)]


def shipment(row: dict[str, str], number: int) -> Shipment:
    """The shipment of a row; `number` is the line in the file."""
    try:
        parcel = Parcel(
            weight=decimal(row["weight"]),
            length=int(row["length"]),
            width=int(row["width"]),
            height=int(row["height"]),
        )
        return Shipment(
            reference=row["reference"],
            customer=row["customer"],
            plan=row["plan"],
            postcode=row["postcode"],
            parcel=parcel,
            returned=row["returned"] == "yes",
            day=row["day"],
        )
    except (KeyError, ValueError, InvalidOperation) as error:
        raise BadRow(f"line {number}: {error!r}") from error


def decimal(text: str) -> Decimal:
    """A number of the scales."""
    return Decimal(text.strip())
