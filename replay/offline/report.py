"""Print the comparison of policies as a table for terminals."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from compaction.replay.result import Totals
from compaction.replay.setting import Setting

_HEADS = (
    "budget",
    "policy",
    "valid",
    "fits",
    "tokens/call",
    "compactions",
    "re-cached",
    "kept",
    "by handle",
    "lost",
    "sessions with losses",
    "cost",
    "cost uncached",
)


def table(settings: Sequence[Setting], sums: Sequence[Totals], *, title: str) -> Table:
    """Return a table with a row per setting.

    `kept`, `by handle` and `lost` are shares of the references that replies used.
    """
    result = Table(title=title)
    for head in _HEADS:
        result.add_column(head, justify="left" if head == "policy" else "right")
    limit = ""
    for setting, total in zip(settings, sums, strict=True):
        if limit and setting.limit.label != limit:
            result.add_section()
        limit = setting.limit.label
        result.add_row(limit, setting.policy.name, *_cells(total))
    return result


def _cells(total: Totals) -> tuple[str, ...]:
    used = total.references.used
    return (
        _share(total.valid, total.calls),
        _share(total.fits, total.calls),
        f"{total.prompt_tokens // max(1, total.calls):,}",
        f"{total.compactions:,}",
        f"{total.rebilled:,}",
        _share(total.references.kept, used),
        _share(total.references.recoverable, used),
        _share(total.references.lost, used),
        f"{total.losing:,}",
        dollars(total.cost),
        dollars(total.cost_uncached),
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"


def dollars(microusd: int | None) -> str:
    """Format micro-dollars as dollars with cents, or `–` if there is no price."""
    return f"${microusd / 1_000_000:,.2f}" if microusd is not None else "–"
