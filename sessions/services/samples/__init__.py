"""The sample data: fictional sessions for new users."""
