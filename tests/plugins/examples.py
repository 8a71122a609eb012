"""Hypothesis settings for all tests."""

import os

from hypothesis import HealthCheck, settings

# The duration of an example depends on the load of the machine, so there is no deadline.
# CI uses the same examples in each run, so that results depend on the change only.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")
