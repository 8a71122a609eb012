"""All writes to accounts. Important changes are recorded in the audit log."""
