"""Health of a session's context."""
