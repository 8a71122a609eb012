"""Replay of stored sessions and of logs on disk, around the pure `compaction.replay`."""
