"""What a parcel costs before discounts and taxes."""

from dataclasses import dataclass
from decimal import Decimal

VOLUMETRIC_DIVISOR = 5000

#: Upper limit of the bracket in kilograms → euros, for each zone.
BRACKETS = {
    "local": [("1", "3.90"), ("2", "4.60"), ("5", "6.20"), ("10", "8.90"), ("20", "13.50"), ("31.5", "18.20")],
    "near": [("1", "4.70"), ("2", "5.50"), ("5", "7.40"), ("10", "10.80"), ("20", "16.20"), ("31.5", "21.90")],
    "far": [("1", "5.80"), ("2", "6.90"), ("5", "9.30"), ("10", "13.40"), ("20", "19.90"), ("31.5", "27.10")],
    "mountain": [("1", "7.20"), ("2", "8.60"), ("5", "11.70"), ("10", "16.90"), ("20", "25.10"), ("31.5", "33.80")],
    "island": [("1", "9.40"), ("2", "11.20"), ("5", "15.30"), ("10", "22.60"), ("20", "34.70"), ("31.5", "47.50")],
}


class TooHeavy(ValueError):
    """No bracket takes the parcel."""


@dataclass(frozen=True)
class Parcel:
    """Weight in kilograms, sides in centimetres."""

    weight: Decimal
    length: int
    width: int
    height: int


def volumetric_weight(parcel: Parcel) -> Decimal:
    """Kilograms that the parcel counts for because of its size."""
    volume = parcel.length * parcel.width * parcel.height
    return Decimal(volume // VOLUMETRIC_DIVISOR)


def chargeable_weight(parcel: Parcel) -> Decimal:
    return max(parcel.weight, volumetric_weight(parcel))


def base_price(parcel: Parcel, zone: str) -> Decimal:
    """Euros. Raises TooHeavy."""
    weight = chargeable_weight(parcel)
    for limit, price in BRACKETS[zone]:
        if weight < Decimal(limit):
            return Decimal(price)
    raise TooHeavy(f"{weight} kg")
