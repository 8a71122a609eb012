"""The lab: simulates a session and compares compaction policies on it."""
