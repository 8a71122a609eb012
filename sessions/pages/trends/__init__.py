"""Trends: what the project used and cost over time, and what compaction saved."""
