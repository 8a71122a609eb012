"""Agents built with frameworks: programs that run in a separate environment, see `running.py`."""
