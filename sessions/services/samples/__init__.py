"""The sample that ships with the product: fictional sessions for new users."""
