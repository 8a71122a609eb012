"""Replays: policies re-run on recorded sessions and on logs on disk, around the pure `compaction.replay`."""
