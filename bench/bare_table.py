"""The table of `bench/bare.py`, in its own module because importing that one configures Django."""

CREATE = """
CREATE TABLE IF NOT EXISTS bench_bare (
    session text NOT NULL, position bigserial, role text NOT NULL, body bytea NOT NULL,
    PRIMARY KEY (session, position))
"""
