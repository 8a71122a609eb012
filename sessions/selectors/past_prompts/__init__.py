"""The prompt at an earlier turn, and the differences between the prompts of two turns."""
