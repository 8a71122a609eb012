"""Working memory: revisions, extraction, and facts that sessions share."""
