"""Requests and answers on real sessions: none is too large, and no real identifier counts as invented."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest

from bench.transcripts import transcripts
from compaction.adapters.tiktoken_counter import TiktokenCounter
from compaction.identifiers.extract import references
from compaction.recap import Recap, complete
from compaction.recap.model_input import split_by_tokens
from compaction.recap.prompt import summary_request
from compaction.recap.reply import Source, summary_read
from compaction.structured_output import Reply
from tests.provider.summaries import summary_of

COUNTER = TiktokenCounter()
CAP = 2_000

#: Sampling interval of logs, and number of sessions per log.
LOGS, SESSIONS = 29, 2


@pytest.mark.trajectories
def test_a_mechanical_summary_is_accepted_completely(trajectories: Path) -> None:
    from compaction.adapters.anthropic_summarizer import MAX_INPUT_TOKENS  # loads the SDK

    logs = sorted(path for path in trajectories.glob("*/**/*") if path.is_file())[::LOGS]
    made_up: list[str] = []
    names = 0
    for session in (session for log in logs for session in islice(transcripts(log), SESSIONS)):
        recap: Recap | None = None
        for piece in split_by_tokens(session.messages, MAX_INPUT_TOKENS // 10, COUNTER):
            request = summary_request(piece, previous=recap, cap_tokens=CAP)
            assert COUNTER.count(request.content) < MAX_INPUT_TOKENS
            text = json.dumps(summary_of({"messages": [{"content": request.content}]}))
            recap, dropped = summary_read(
                Reply(text=text, stop_reason="end_turn"),
                source=Source.of(piece, recap),
                cap_tokens=CAP,
                counter=COUNTER,
            )
            made_up += dropped
        if recap is not None:
            full = complete(recap, session.messages, counter=COUNTER, cap_tokens=CAP)
            assert COUNTER.count(full.render()) <= CAP
            assert references(recap.render()) <= references(full.render())
            names += len(references(full.render()))
    assert names > 500
    assert made_up == []
