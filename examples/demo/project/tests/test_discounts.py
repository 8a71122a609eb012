import unittest
from decimal import Decimal

from parcelpost.discounts import combined, discount_of, volume_discount


class DiscountsTest(unittest.TestCase):
    def test_volume(self):
        self.assertEqual(volume_discount(49), Decimal("0"))
        self.assertEqual(volume_discount(50), Decimal("0.04"))
        self.assertEqual(volume_discount(999), Decimal("0.12"))

    def test_discounts_multiply(self):
        self.assertEqual(combined([Decimal("0.10"), Decimal("0.10")]), Decimal("0.19"))

    def test_never_more_than_the_cap(self):
        self.assertEqual(combined([Decimal("0.18"), Decimal("0.12"), Decimal("0.25")]), Decimal("0.30"))

    def test_of_a_customer(self):
        self.assertEqual(discount_of("basic", 10), Decimal("0"))
        self.assertEqual(discount_of("business", 60), Decimal("0.136"))
