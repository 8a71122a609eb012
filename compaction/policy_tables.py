"""The reference tables of docs/reference/policies.md, generated from the registries.

python -m compaction.policy_tables
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from compaction.strategies import STRATEGIES
from compaction.triggers import TRIGGERS


def strategies_table() -> str:
    """Return the Markdown table of the strategies, in the order in which a compaction tries them."""
    rows = ((f"`{strategy.name}`", strategy.description) for strategy in STRATEGIES.values())
    return _table(("step", "what it does"), rows)


def triggers_table() -> str:
    """Return the Markdown table of the triggers, in order of precedence."""
    rows = ((f"`{trigger.name}`", trigger.description) for trigger in TRIGGERS.values())
    return _table(("trigger", "compacts when"), rows)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (header, ("---",) * len(header), *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    sys.stdout.write(f"{triggers_table()}\n\n{strategies_table()}\n")
