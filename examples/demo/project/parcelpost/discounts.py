"""Discounts of a customer."""

from decimal import Decimal

CAP = Decimal("0.30")

#: Customer's plan → its discount.
PLANS = {"basic": Decimal("0"), "business": Decimal("0.10"), "partner": Decimal("0.18")}

#: Parcels in the month → discount, the largest that is reached.
VOLUME = [(500, Decimal("0.12")), (200, Decimal("0.08")), (50, Decimal("0.04"))]


def volume_discount(parcels: int) -> Decimal:
    for reached, discount in VOLUME:
        if parcels >= reached:
            return discount
    return Decimal("0")


def combined(discounts: list[Decimal]) -> Decimal:
    """The share of the price that all discounts together take off."""
    return sum(discounts, Decimal("0"))


def discount_of(plan: str, parcels: int, campaign: Decimal = Decimal("0")) -> Decimal:
    """The discount of a customer with this plan who sent so many parcels in the month."""
    return combined([PLANS[plan], volume_discount(parcels), campaign])
