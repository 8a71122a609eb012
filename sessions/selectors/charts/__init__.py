"""The turns of one session, as its chart shows them."""
