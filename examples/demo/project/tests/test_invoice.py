import unittest
from decimal import Decimal

from parcelpost.invoice import Invoice, make_line, render


class InvoiceTest(unittest.TestCase):
    def test_the_tax_is_on_what_the_discount_leaves(self):
        line = make_line("P-1", "near", Decimal("10.80"), Decimal("0.10"))
        self.assertEqual(line.net, Decimal("9.72"))
        self.assertEqual(line.tax, Decimal("1.94"))
        self.assertEqual(line.total, Decimal("11.66"))

    def test_without_discount(self):
        line = make_line("P-2", "local", Decimal("3.90"), Decimal("0"))
        self.assertEqual((line.net, line.tax), (Decimal("3.90"), Decimal("0.78")))

    def test_sums(self):
        invoice = Invoice("Alma", [make_line(f"P-{n}", "far", Decimal("5.80"), Decimal("0.136")) for n in range(3)])
        self.assertEqual(invoice.net, Decimal("15.03"))
        self.assertEqual(invoice.tax, Decimal("3.00"))

    def test_render(self):
        text = render(Invoice("Alma", [make_line("P-1", "far", Decimal("5.80"), Decimal("0"))]))
        self.assertIn("6.96 EUR", text)
