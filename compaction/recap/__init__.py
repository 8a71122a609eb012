"""The recap: what stands in the prompt for the messages that were evicted.

Four sections, for people and models alike: decisions, entities, facts, open items. `extract` makes one
from the messages alone, without a model; a model-made summary fills the same `Recap`, and `complete`
fills the room that it leaves.
"""

from compaction.recap.extract import complete, extract
from compaction.recap.summary import Summarizer, SummaryResult
from compaction.recap.values import Item, Mention, Recap, Status

__all__ = ["Item", "Mention", "Recap", "Status", "Summarizer", "SummaryResult", "complete", "extract"]
