"""Render transcript text as HTML: Markdown, code, diffs, JSON, terminal colors and images.

Every function escapes what it does not understand, and replaces control characters (`sessions.pages.text`).
"""
