"""Amounts of money: Decimal, in euros, rounded to cents only where a line of an invoice is made."""

from decimal import Decimal

CENT = Decimal("0.01")


def cents(amount: Decimal) -> Decimal:
    """The amount rounded to cents, half up."""
    return amount.quantize(CENT)


def euros(amount: Decimal) -> str:
    """Format an amount for an invoice: 1,234.50 EUR."""
    return f"{cents(amount):,} EUR"


def percent(part: Decimal, whole: Decimal) -> str:
    """A share for the reports, with one decimal."""
    if not whole:
        return "-"
    return f"{part / whole * 100:.1f} %"
