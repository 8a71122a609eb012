"""Fixtures and hooks shared by all tests, one module per subject."""
