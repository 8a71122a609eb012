"""The sample session that ships with the product."""
