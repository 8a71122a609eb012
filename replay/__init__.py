"""Replays: simulate policies on recorded sessions and on log files, using the pure `compaction.replay`."""
