"""Trends: a project's usage, cost and compaction savings over time."""
