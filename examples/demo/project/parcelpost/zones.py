"""From a postcode to a zone."""

from parcelpost.zone_table import ZONES


class UnknownPostcode(LookupError):
    """No range of the table holds the postcode."""


def zone_of(postcode: str) -> str:
    """The zone of a postcode such as "69003". Raises UnknownPostcode."""
    number = normalised(postcode)
    for first, last, zone in ZONES:
        if first <= number < last:
            return zone
    raise UnknownPostcode(postcode)


def normalised(postcode: str) -> int:
    """The postcode as a number: the warehouse writes F-69003, FR69003 and 69 003."""
    digits = "".join(character for character in postcode if character.isdigit())
    if not digits:
        raise UnknownPostcode(postcode)
    return int(digits)


def zones() -> list[str]:
    """All zones, in the order of the table."""
    return list(dict.fromkeys(zone for _, _, zone in ZONES))
