"""Measure the requests of memory extraction on recorded sessions. Calls no model.

    python -m bench.memory_reading <transcripts>

Processes each session turn by turn, as a worker would: a request is made when there is enough new content,
and once at the end of the session. Tokens are estimates (o200k_base). Responses, and the items in later
requests that would come from the model, are not included.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from bench.transcripts import Transcript, transcripts
from compaction.adapters.tiktoken_counter import TiktokenCounter
from compaction.memory.extraction.reply import Extraction
from compaction.memory.extraction.schedule import MAX_INPUT_TOKENS, turns_to_extract
from compaction.memory.origins import Notes
from compaction.memory.schema import PLAIN
from compaction.memory.updates import UpdaterState, update_notes
from compaction.messages import Message
from compaction.recap.model_input import split_by_tokens

FOLDERS = ("entire-claude-code", "openhands-completions", "mini-swe-agent", "pi-coding-agent")
COUNTER = TiktokenCounter()


def requests(transcript: Transcript) -> Iterator[int]:
    """Return the estimated tokens of each request that the session causes."""
    notes, state, unread = Notes(), UpdaterState(), list[list[Message]]()
    for _, group in groupby(transcript.messages, key=lambda message: message.turn):
        turn = list(group)
        kept = update_notes(notes, state, turn, counter=COUNTER)
        notes, state = kept.notes, kept.state
        unread.append(turn)
        yield from _read(unread, notes, is_idle=False)
    while unread:
        yield from _read(unread, notes, is_idle=True)


def _read(unread: list[list[Message]], notes: Notes, *, is_idle: bool) -> Iterator[int]:
    """Yield the size of each request that is pending; its turns are removed from `unread`."""
    count = turns_to_extract([sum(message.tokens for message in turn) for turn in unread], is_idle=is_idle)
    messages = [message for turn in unread[:count] for message in turn]
    del unread[:count]
    for piece in split_by_tokens(messages, MAX_INPUT_TOKENS, COUNTER) if messages else ():
        request = Extraction(messages=piece, notes=notes, schema=PLAIN).request
        yield COUNTER.count(request.system) + COUNTER.count(request.content)


def main() -> None:
    for name in sys.argv[2:] or FOLDERS:
        sizes, turns, sessions, tokens = list[int](), 0, 0, 0
        for transcript in transcripts(Path(sys.argv[1]) / name):
            sessions += 1
            turns += len({message.turn for message in transcript.messages})
            tokens += sum(message.tokens for message in transcript.messages)
            sizes += requests(transcript)
        print(f"{name}: {sessions} sessions, {turns:,} turns, {tokens:,} tokens of messages")
        print(f"  {len(sizes):,} requests, one per {turns / len(sizes):.1f} turns")
        print(f"  tokens per request: median {statistics.median(sizes):,.0f}, largest {max(sizes):,}")
        print(f"  total {sum(sizes):,}, {sum(sizes) / sessions:,.0f} per session")


if __name__ == "__main__":
    main()
