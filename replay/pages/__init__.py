"""Replay pages: a project's runs, one run with its charts, a session's replays and the recommendation."""
