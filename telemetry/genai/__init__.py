"""Spans of model calls and tools, in the conventions that instrumentations use."""
