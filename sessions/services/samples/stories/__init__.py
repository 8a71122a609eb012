"""The contents of the sample sessions."""
