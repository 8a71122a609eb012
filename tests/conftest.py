"""The plugins with the shared fixtures.

Tests of pure packages start without Django: their folders have a `pytest.ini`, so pytest does not load this
file for them.
"""

pytest_plugins = [
    "tests.plugins.garbage",
    "tests.plugins.collecting",
    "tests.plugins.lanes",
    "tests.plugins.workers",
    "tests.plugins.examples",
    "tests.plugins.transcripts",
    "tests.plugins.servers",
    "tests.plugins.instances",
    "tests.plugins.browser",
    "tests.plugins.reused",
    "tests.plugins.people",
]
