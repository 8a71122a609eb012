import tempfile
import unittest
from decimal import Decimal
from pathlib import Path

from parcelpost.parsing import BadRow, decimal, read

HEADER = "reference;customer;plan;postcode;weight;length;width;height;returned;day\n"


def written(text: str, encoding: str = "utf-8") -> Path:
    with tempfile.NamedTemporaryFile("w", encoding=encoding, suffix=".csv", delete=False) as file:
        file.write(text)
    return Path(file.name)


class ParsingTest(unittest.TestCase):
    def test_reads_a_row(self):
        path = written(HEADER + "P-1;Alma;basic;69003;1.25;10;20;30;no;2026-03-02\n")
        [shipment] = read(path)
        self.assertEqual(shipment.parcel.weight, Decimal("1.25"))
        self.assertFalse(shipment.returned)

    def test_decimal_comma(self):
        self.assertEqual(decimal(" 1,25 "), Decimal("1.25"))

    def test_byte_order_mark(self):
        path = written(HEADER + "P-1;Alma;basic;69003;1;10;20;30;yes;2026-03-02\n", encoding="utf-8-sig")
        self.assertEqual(read(path)[0].reference, "P-1")

    def test_says_which_row_is_bad(self):
        path = written(HEADER + "P-1;Alma;basic;69003;heavy;10;20;30;no;2026-03-02\n")
        with self.assertRaisesRegex(BadRow, "line 2"):
            read(path)
