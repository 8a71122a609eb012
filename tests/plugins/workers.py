"""The number of workers of pytest-xdist with `-n auto`."""

import os

#: Each takes up to 600 MB, and the servers that its tests start as much again.
MOST = 8


def pytest_xdist_auto_num_workers() -> int:
    """Return three workers for two cores: tests wait for servers and browsers a quarter of their time."""
    return min(MOST, (os.cpu_count() or 1) * 3 // 2)
