"""Upload logs and follow their import."""
