"""Fixtures for the tests of text analysis and ranking."""

from __future__ import annotations

from tests.plugins import examples  # noqa: F401  # loads the Hypothesis profile
