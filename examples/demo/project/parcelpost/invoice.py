"""Lines of an invoice, and the invoice."""

from dataclasses import dataclass, field
from decimal import Decimal

from parcelpost.money import cents, euros

TAX = Decimal("0.20")


@dataclass(frozen=True)
class Line:
    """One shipment on the invoice. All amounts in euros, rounded."""

    reference: str
    zone: str
    net: Decimal
    tax: Decimal

    @property
    def total(self) -> Decimal:
        return self.net + self.tax


@dataclass
class Invoice:
    customer: str
    lines: list[Line] = field(default_factory=list)

    @property
    def net(self) -> Decimal:
        return sum((line.net for line in self.lines), Decimal("0"))

    @property
    def tax(self) -> Decimal:
        return sum((line.tax for line in self.lines), Decimal("0"))

    @property
    def total(self) -> Decimal:
        return self.net + self.tax


def make_line(reference: str, zone: str, price: Decimal, discount: Decimal) -> Line:
    """The line of a shipment: its price, the customer's discount, the tax."""
    tax = cents(price * TAX)
    net = cents(price * (1 - discount))
    return Line(reference=reference, zone=zone, net=net, tax=tax)


def render(invoice: Invoice) -> str:
    """The invoice as text, a line a shipment."""
    rows = [f"Invoice for {invoice.customer}", ""]
    for line in invoice.lines:
        rows.append(f"{line.reference:<12} {line.zone:<10} {euros(line.net):>14} {euros(line.tax):>12}")
    rows += ["", f"{'net':<23} {euros(invoice.net):>14}", f"{'tax':<23} {euros(invoice.tax):>14}"]
    rows.append(f"{'total':<23} {euros(invoice.total):>14}")
    return "\n".join(rows)
