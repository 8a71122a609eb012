"""Usage of a project over time and savings by compaction, read from the quarter-hour rollups."""
