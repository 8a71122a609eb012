"""Hypothesis settings for all tests.

CONTEXTAPP_EXAMPLES sets the number of examples of each test: few in `make check`, many to search for errors.
"""

import os

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers


def examples(default: int) -> int:
    """Return the number of examples for a test."""
    return int(os.environ.get("CONTEXTAPP_EXAMPLES", default))


# The duration of an example depends on the load of the machine, so there is no deadline.
# CI uses the same examples in each run, so that results depend on the change only.
settings.register_profile(
    "tests",
    max_examples=examples(30),
    deadline=None,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")

# Hypothesis parses every module that is loaded, to find constants. This takes seconds, and makes the examples
# of a test depend on the tests before it.
providers._get_local_constants = lambda: providers._local_constants
