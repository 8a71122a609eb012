"""Read stored sessions as transcripts."""

from __future__ import annotations

import pricing
from compaction.dialects import get_dialect
from compaction.replay.transcript import FIVE_MINUTES, HOUR, RecordedTurn, Transcript, transcript_of
from sessions.models import AgentSession, Preamble
from sessions.models import Turn as TurnRow
from sessions.selectors.convert import usage_of
from sessions.selectors.transcripts.rows import message_batches


def session_transcript(session: AgentSession) -> Transcript:
    """Return the transcript of a session. Reads the whole history, so only workers call it."""
    rows = [row for batch, _ in message_batches(session) for row in batch]
    turns = list(session.turns.order_by("index"))
    fixed_tokens = {
        preamble.version: preamble.system_tokens + preamble.tools_tokens
        for preamble in Preamble.objects.filter(session=session)
    }
    return transcript_of(
        name=session.title or session.external_id,
        format=get_dialect(session.format).name,
        messages=[row.value(session.format) for row in rows],
        turns=[_turn(turn, fixed_tokens.get(turn.preamble_version, 0)) for turn in turns],
        model=session.model,
        cache_seconds=HOUR if _uses_one_hour_cache(turns, session.model) else FIVE_MINUTES,
        omitted={row.position for row in rows if row.omitted_from is not None},
    )


def _turn(row: TurnRow, beside: int) -> RecordedTurn:
    return RecordedTurn(
        index=row.index,
        first=row.first_position,
        end=row.first_position + row.message_count,
        beside=beside,
        served=row.prompt_served,
        usage=usage_of(row),
        at=row.at,
        model=row.model,
        cost=row.cost_microusd,
        restarts=row.client_compaction is not None,
    )


def _uses_one_hour_cache(turns: list[TurnRow], model: str) -> bool:
    """Return whether the client paid for one-hour caching, judging by the turn with the largest cache
    write."""
    priced = [turn for turn in turns if turn.cost_microusd and turn.cache_write_tokens]
    if not priced:
        return False
    turn = max(priced, key=lambda row: row.cache_write_tokens or 0)
    usage = usage_of(turn)
    assert usage is not None
    name = turn.model or model
    five_minutes = pricing.price(name, usage, turn.at).microusd
    hour = pricing.price(name, usage, turn.at, cache_write_1h_tokens=usage.cache_write_tokens).microusd
    if five_minutes is None or hour is None:
        return False
    return five_minutes < (turn.cost_microusd or 0) <= hour  # a higher cost is that of a log
