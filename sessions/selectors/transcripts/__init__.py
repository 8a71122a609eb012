"""The messages of a session, for pages, scans and exports."""
