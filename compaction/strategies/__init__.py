"""The strategies: a file each, and a line here. None knows another.

A strategy takes the view and the circumstances, and gives the view after its edits, and the edits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compaction.context import Context
from compaction.edits import Edit
from compaction.strategies import (
    clear_thinking,
    clip,
    collapse,
    dedupe,
    drop_oldest,
    last_resort,
    offload,
    recap,
    recency,
    shed,
    supersede,
)
from compaction.view import View

Strategy = Callable[[View, Context], tuple[View, tuple[Edit, ...]]]

STRATEGIES: Mapping[str, Strategy] = {
    dedupe.NAME: dedupe.run,
    supersede.NAME: supersede.run,
    collapse.NAME: collapse.run,
    clip.NAME: clip.run,
    recency.NAME: recency.run,
    clear_thinking.NAME: clear_thinking.run,
    recap.NAME: recap.run,
    offload.NAME: offload.run,
    drop_oldest.NAME: drop_oldest.run,
    shed.NAME: shed.run,
    last_resort.NAME: last_resort.run,
}
