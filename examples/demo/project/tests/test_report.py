import unittest
from decimal import Decimal

from parcelpost.parsing import Shipment
from parcelpost.rates import Parcel
from parcelpost.report import by_customer, by_zone, invoices


def shipment(reference: str, customer: str = "Alma", *, returned: bool = False) -> Shipment:
    parcel = Parcel(Decimal("1"), 10, 10, 10)
    return Shipment(reference, customer, "basic", "69003", parcel, returned, "2026-03-02")


class ReportTest(unittest.TestCase):
    def test_returned_parcels_cost_nothing(self):
        invoice = invoices([shipment("P-1"), shipment("P-2", returned=True)])["Alma"]
        self.assertEqual([line.reference for line in invoice.lines], ["P-1", "P-2"])
        self.assertEqual(invoice.lines[1].total, Decimal("0"))

    def test_customers_are_sorted(self):
        self.assertEqual(list(invoices([shipment("P-1", "Zeta"), shipment("P-2", "Alma")])), ["Alma", "Zeta"])

    def test_by_customer_ends_with_the_sum(self):
        self.assertIn("all", by_customer([shipment("P-1")]).splitlines()[-1])

    def test_by_zone(self):
        self.assertEqual(by_zone([shipment("P-1")]).split(), ["local", "4.68", "EUR"])
