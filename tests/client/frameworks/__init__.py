"""Agents built with frameworks: programs that run in an environment of their own, see `running.py`."""
