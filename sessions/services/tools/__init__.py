"""Count what tools cost."""
