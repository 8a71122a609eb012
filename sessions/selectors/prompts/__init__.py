"""Prompts, read from the database or from the cache of this process."""
