"""The tables of `bench/bare.py`, in their own module because importing that one configures Django."""

from __future__ import annotations

import json
import zlib
from typing import Any

CREATE = """
CREATE TABLE IF NOT EXISTS bench_bare (
    session text NOT NULL, position bigserial, role text NOT NULL, body bytea NOT NULL,
    PRIMARY KEY (session, position));
CREATE TABLE IF NOT EXISTS bench_sessions (
    id uuid PRIMARY KEY, external_id text, title text, agent text, model text, format text, origin text,
    tags text[], metadata jsonb, policy jsonb, created_at timestamptz, last_active_at timestamptz, turns int,
    messages int, compactions int, shown jsonb, context jsonb, budget int, calibration jsonb,
    last_prompt_tokens int, peak_prompt_tokens int, uncached bigint, cache_read bigint, cache_write bigint,
    output bigint, cost_microusd bigint, unpriced_turns int);
CREATE INDEX IF NOT EXISTS bench_newest ON bench_sessions (last_active_at DESC, id DESC);
"""

#: Copies the sessions of contextapp, so that both lists have the same content.
COPY_SESSIONS = """
INSERT INTO bench_sessions
SELECT id, external_id, title, agent, model, format, origin, tags, metadata, policy, created_at,
       last_active_at, turn_count, message_count, compaction_count, shown_components, context_components,
       budget_tokens, calibration, last_prompt_tokens, peak_prompt_tokens, uncached_tokens,
       cache_read_tokens, cache_write_tokens, output_tokens, cost_microusd, unpriced_turns
  FROM agent_sessions_agentsession
"""

COPY_MESSAGES = "COPY bench_bare (session, role, body) FROM STDIN"


def row(session: str, message: dict[str, Any]) -> tuple[str, str, bytes]:
    """Return session, role and body of a message, as the bare view stores it."""
    return session, message["role"], zlib.compress(json.dumps(message).encode(), 1)
