import unittest
from decimal import Decimal

from parcelpost.rates import Parcel, TooHeavy, base_price, chargeable_weight, volumetric_weight


def parcel(weight: str, length: int = 10, width: int = 10, height: int = 10) -> Parcel:
    return Parcel(Decimal(weight), length, width, height)


class RatesTest(unittest.TestCase):
    def test_volumetric_weight_is_not_rounded(self):
        self.assertEqual(volumetric_weight(parcel("1", 40, 30, 22)), Decimal("5.28"))

    def test_the_greater_weight_counts(self):
        self.assertEqual(chargeable_weight(parcel("7", 40, 30, 22)), Decimal("7"))
        self.assertEqual(chargeable_weight(parcel("2", 40, 30, 22)), Decimal("5.28"))

    def test_the_limit_belongs_to_the_bracket(self):
        self.assertEqual(base_price(parcel("5"), "local"), Decimal("6.20"))
        self.assertEqual(base_price(parcel("5.001"), "local"), Decimal("8.90"))
        self.assertEqual(base_price(parcel("31.5"), "island"), Decimal("47.50"))

    def test_too_heavy(self):
        with self.assertRaises(TooHeavy):
            base_price(parcel("31.6"), "near")
