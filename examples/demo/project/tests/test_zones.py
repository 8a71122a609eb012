import unittest

from parcelpost.zone_table import ZONES
from parcelpost.zones import UnknownPostcode, normalised, zone_of, zones


class ZonesTest(unittest.TestCase):
    def test_both_ends_belong_to_a_range(self):
        for first, last, zone in ZONES:
            with self.subTest(first=first, last=last):
                self.assertEqual(zone_of(f"{first:05}"), zone)
                self.assertEqual(zone_of(f"{last:05}"), zone)

    def test_spellings(self):
        for text in ("69003", "F-69003", "FR69003", "69 003"):
            self.assertEqual(normalised(text), 69003)

    def test_unknown(self):
        for text in ("", "Lyon", "99999"):
            with self.assertRaises(UnknownPostcode):
                zone_of(text)

    def test_zones(self):
        self.assertEqual(set(zones()), {"local", "near", "far", "mountain", "island"})
