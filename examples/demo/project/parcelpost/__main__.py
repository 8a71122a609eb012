"""The command line."""

import argparse
from pathlib import Path

from parcelpost import parsing, report


def main() -> None:
    parser = argparse.ArgumentParser(prog="parcelpost")
    parser.add_argument("export", type=Path)
    parser.add_argument("--zones", action="store_true", help="totals for each zone")
    options = parser.parse_args()
    shipments = parsing.read(options.export)
    print(report.by_zone(shipments) if options.zones else report.by_customer(shipments))


if __name__ == "__main__":
    main()
