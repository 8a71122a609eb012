"""`imports/`: import agent logs as sessions."""
