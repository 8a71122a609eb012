"""The recap: the message that replaces evicted messages in a prompt.

A recap has four sections: decisions, entities, facts and open items. `extract` builds one without a model. A
model's summary has the same form; `complete` fills the remaining space with identifiers.
"""

from compaction.recap.extract import complete, extract
from compaction.recap.summary import Summarizer, SummaryResult
from compaction.recap.values import Item, Mention, Recap, Status

__all__ = ["Item", "Mention", "Recap", "Status", "Summarizer", "SummaryResult", "complete", "extract"]
