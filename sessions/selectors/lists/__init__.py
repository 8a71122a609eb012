"""Lists of sessions and turns, with their filters."""
