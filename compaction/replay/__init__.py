"""Replay: simulate a policy on a recorded session, call by call.

    replay(transcript, policy, counter, budget=...) -> Result

Pure functions: nothing here reads a store or calls a model, unless a summarizer is passed in.
"""

from compaction.replay.costs import actual_cost, cost
from compaction.replay.pareto import front
from compaction.replay.prices import Prices, Tier
from compaction.replay.reference_count import Search
from compaction.replay.result import Lost, References, Result, Totals, totals
from compaction.replay.scale import Scale, scale_of
from compaction.replay.setting import Limit, Setting
from compaction.replay.simulate import replay
from compaction.replay.transcript import RecordedCall, Transcript, transcript_of

__all__ = [
    "Limit",
    "Lost",
    "Prices",
    "RecordedCall",
    "References",
    "Result",
    "Scale",
    "Search",
    "Setting",
    "Tier",
    "Totals",
    "Transcript",
    "actual_cost",
    "cost",
    "front",
    "replay",
    "scale_of",
    "totals",
    "transcript_of",
]
