"""Compactions: their records and edits, what they hid, and whether it was needed again."""
