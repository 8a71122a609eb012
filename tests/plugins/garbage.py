"""Spend less time on garbage collection: modules and collected tests stay until the end."""

import gc

gc.set_threshold(50_000, 20, 100)  # before the tests are imported


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.freeze()  # pytest collects once more before the process ends
