"""The bugs of the scratch project, and how the scripted model finds and fixes each of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A bug: the files to read and search first, the fix, and the notes to record afterwards.

    `wrong` is an attempt that fails first; `failed` records why.
    """

    title: str
    reads: tuple[str, ...]
    thought: str
    greps: tuple[tuple[str, str], ...]
    path: str
    old: str
    new: str
    change: str
    tests: str
    decision: str
    next: str
    wrong: str | None = None
    failed: str = ""


FAULTS = (
    Fault(
        title="rounding, since every amount goes through it",
        reads=("parcelpost/money.py", "tests/test_money.py"),
        thought="quantize rounds half to even by default. What else rounds?",
        greps=((r"quantize|round\(|cents", "parcelpost"),),
        path="parcelpost/money.py",
        old="    return amount.quantize(CENT)\n",
        new="    return amount.quantize(CENT, rounding=ROUND_HALF_UP)\n",
        wrong="    return round(amount, 2)\n",
        failed="cents: round(amount, 2) did not work, it rounds half to even just as quantize does",
        change="This sets the rounding mode; its import comes next.",
        tests="tests.test_money",
        decision="money.cents rounds half up (ROUND_HALF_UP), once per line",
        next="Import ROUND_HALF_UP, then zones.",
    ),
    Fault(
        title="the import for the rounding mode",
        reads=("parcelpost/money.py",),
        thought="decimal has the constant. Is it imported anywhere?",
        greps=(("import Decimal", "parcelpost"),),
        path="parcelpost/money.py",
        old="from decimal import Decimal\n",
        new="from decimal import ROUND_HALF_UP, Decimal\n",
        change="Only the import is missing.",
        tests="tests.test_money",
        decision="money imports ROUND_HALF_UP from decimal",
        next="Zones: both ends of a range.",
    ),
    Fault(
        title="zones, which miss the last postcode of each range",
        reads=("parcelpost/zones.py", "parcelpost/zone_table.py", "tests/test_zones.py"),
        thought="The table says that both ends belong to a range; the lookup leaves the last one out.",
        greps=((r"690|691|692", "parcelpost/zone_table.py"), ("zone_of|ZONES", ".")),
        path="parcelpost/zones.py",
        old="        if first <= number < last:\n",
        new="        if first <= number <= last:\n",
        change="The upper end belongs to the range.",
        tests="tests.test_zones",
        decision="zones.zone_of: the last postcode of a range belongs to it",
        next="Rates: volumetric weight and limits of the brackets.",
    ),
    Fault(
        title="the volumetric weight",
        reads=("parcelpost/rates.py", "tests/test_rates.py"),
        thought="The README says not to round it, but the division drops the remainder.",
        greps=(("VOLUMETRIC|volum", "."),),
        path="parcelpost/rates.py",
        old="    return Decimal(volume // VOLUMETRIC_DIVISOR)\n",
        new="    return Decimal(volume) / VOLUMETRIC_DIVISOR\n",
        change="A division of Decimals keeps the fraction.",
        tests="tests.test_rates",
        decision="rates.volumetric_weight is not rounded",
        next="Rates: a parcel of exactly the limit.",
    ),
    Fault(
        title="the limits of the brackets",
        reads=("parcelpost/rates.py",),
        thought="One test is left: a parcel of exactly 5 kg.",
        greps=(("exactly|limit", "README.md"), ("limit", "parcelpost")),
        path="parcelpost/rates.py",
        old="        if weight < Decimal(limit):\n",
        new="        if weight <= Decimal(limit):\n",
        change="The limit belongs to its bracket.",
        tests="tests.test_rates",
        decision="rates.base_price: a parcel of exactly the limit is still in the bracket",
        next="Discounts multiply, and the cap.",
    ),
    Fault(
        title="discounts",
        reads=("parcelpost/discounts.py", "tests/test_discounts.py"),
        thought="They are added and there is no cap. The README says: multiply, at most 30%.",
        greps=(("discount", "README.md"), ("combined|CAP|discount_of", ".")),
        path="parcelpost/discounts.py",
        old='    return sum(discounts, Decimal("0"))\n',
        wrong='    return min(CAP, sum(discounts, Decimal("0")))\n',
        new=(
            '    left = Decimal("1")\n    for discount in discounts:\n        left *= 1 - discount\n'
            "    return min(CAP, 1 - left)\n"
        ),
        failed="discounts: capping the sum did not work, two of 10% must give 19% and not 20%",
        change="The remaining price is the product of what each discount leaves.",
        tests="tests.test_discounts",
        decision="discounts.combined multiplies the remaining shares and caps at 30%",
        next="Invoice: tax after the discount.",
    ),
    Fault(
        title="the tax",
        reads=("parcelpost/invoice.py", "tests/test_invoice.py"),
        thought="The tax is taken from the price before the discount.",
        greps=(("TAX|tax", "parcelpost"),),
        path="parcelpost/invoice.py",
        old="    tax = cents(price * TAX)\n    net = cents(price * (1 - discount))\n",
        new="    net = cents(price * (1 - discount))\n    tax = cents(net * TAX)\n",
        change="First the discount, then the tax on the discounted price.",
        tests="tests.test_invoice",
        decision="invoice.make_line: net first, tax on the net",
        next="Parsing: decimal commas.",
    ),
    Fault(
        title="decimal commas",
        reads=("parcelpost/parsing.py", "tests/test_parsing.py"),
        thought="Decimal does not accept commas. The log shows exactly that: '4,37'.",
        greps=((r"ERROR", "logs/nightly.log"), (r"P-10[0-2]\d\d;.*\d,\d", "data/shipments.csv")),
        path="parcelpost/parsing.py",
        old="    return Decimal(text.strip())\n",
        new='    return Decimal(text.strip().replace(",", "."))\n',
        change="Treat a comma as a decimal point.",
        tests="tests.test_parsing",
        decision="parsing.decimal reads decimal commas",
        next="Parsing: the byte order mark.",
    ),
    Fault(
        title="the byte order mark",
        reads=("parcelpost/parsing.py",),
        thought="With the mark, the first column is not called `reference`.",
        greps=(("encoding", "."),),
        path="parcelpost/parsing.py",
        old='encoding="utf-8", newline',
        new='encoding="utf-8-sig", newline',
        change="utf-8-sig reads files with and without the mark.",
        tests="tests.test_parsing",
        decision="parsing.read accepts exports with a byte order mark (utf-8-sig)",
        next="Report: returned parcels.",
    ),
    Fault(
        title="returned parcels",
        reads=("parcelpost/report.py", "tests/test_report.py"),
        thought="They are listed and billed; they must be listed at no cost.",
        greps=(("returned", "."), (";yes;", "data/shipments.csv")),
        path="parcelpost/report.py",
        old="    price = base_price(shipment.parcel, zone)\n",
        new='    price = Decimal("0") if shipment.returned else base_price(shipment.parcel, zone)\n',
        change="A returned parcel has a price of zero; its line stays.",
        tests="tests.test_report",
        decision="report.line_of: a returned parcel is listed and costs nothing",
        next="All tests, then the totals.",
    ),
)
