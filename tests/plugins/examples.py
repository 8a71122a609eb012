"""Hypothesis settings for all tests."""

import os

from hypothesis import HealthCheck, settings

# The duration of an example depends on the load of the machine, so there is no deadline.
# CI repeats the same examples, so that a run says something about the change and not about luck.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")
