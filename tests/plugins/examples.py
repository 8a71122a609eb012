"""Hypothesis settings for all tests."""

from hypothesis import HealthCheck, settings

# The duration of an example depends on the load of the machine, so there is no deadline.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")
