"""Totals of a month."""

from collections import Counter, defaultdict
from decimal import Decimal

from parcelpost.discounts import discount_of
from parcelpost.invoice import Invoice, Line, make_line
from parcelpost.money import euros, percent
from parcelpost.parsing import Shipment
from parcelpost.rates import base_price
from parcelpost.zones import zone_of


def line_of(shipment: Shipment, parcels: int) -> Line:
    """The invoice line of a shipment whose customer sent so many parcels in the month."""
    zone = zone_of(shipment.postcode)
    price = base_price(shipment.parcel, zone)
    return make_line(shipment.reference, zone, price, discount_of(shipment.plan, parcels))


def invoices(shipments: list[Shipment]) -> dict[str, Invoice]:
    """The invoice of each customer, by name."""
    counts = Counter(shipment.customer for shipment in shipments)
    found: dict[str, Invoice] = {}
    for shipment in shipments:
        invoice = found.setdefault(shipment.customer, Invoice(shipment.customer))
        invoice.lines.append(line_of(shipment, counts[shipment.customer]))
    return dict(sorted(found.items()))


def by_customer(shipments: list[Shipment]) -> str:
    made = invoices(shipments)
    whole = sum((invoice.total for invoice in made.values()), Decimal("0"))
    rows = [
        f"{name:<20} {len(invoice.lines):>5} {euros(invoice.total):>16} {percent(invoice.total, whole):>8}"
        for name, invoice in made.items()
    ]
    return "\n".join([*rows, f"{'all':<20} {len(shipments):>5} {euros(whole):>16}"])


def by_zone(shipments: list[Shipment]) -> str:
    totals: dict[str, Decimal] = defaultdict(Decimal)
    for invoice in invoices(shipments).values():
        for line in invoice.lines:
            totals[line.zone] += line.total
    return "\n".join(f"{zone:<10} {euros(total):>16}" for zone, total in sorted(totals.items()))
