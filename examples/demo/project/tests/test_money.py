import unittest
from decimal import Decimal

from parcelpost.money import cents, euros, percent


class MoneyTest(unittest.TestCase):
    def test_rounds_half_up(self):
        self.assertEqual(cents(Decimal("2.675")), Decimal("2.68"))
        self.assertEqual(cents(Decimal("2.665")), Decimal("2.67"))
        self.assertEqual(cents(Decimal("0.125")), Decimal("0.13"))

    def test_euros(self):
        self.assertEqual(euros(Decimal("1234.5")), "1,234.50 EUR")

    def test_percent(self):
        self.assertEqual(percent(Decimal(1), Decimal(8)), "12.5 %")
        self.assertEqual(percent(Decimal(1), Decimal(0)), "-")
