"""The comparison of policies as one table, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from compaction.replay import Setting, Totals

_HEADS = (
    "budget",
    "policy",
    "valid %",
    "fits %",
    "tokens a call",
    "compactions",
    "re-billed",
    "kept %",
    "by handle %",
    "lost %",
    "sessions losing",
    "cost $",
    "uncached $",
)


def table(settings: Sequence[Setting], sums: Sequence[Totals], *, title: str) -> Table:
    """One row a setting. `kept`, `by handle` and `lost` are shares of the references that answers used."""
    made = Table(title=title)
    for head in _HEADS:
        made.add_column(head, justify="left" if head == "policy" else "right")
    limit = ""
    for setting, total in zip(settings, sums, strict=True):
        if limit and setting.limit.label != limit:
            made.add_section()
        limit = setting.limit.label
        made.add_row(limit, setting.policy.name, *_cells(total))
    return made


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
    return f"{100 * part / whole:.1f}" if whole else "–"


def dollars(microusd: int | None) -> str:
    """Dollars with cents; `–` where there is no price."""
    return f"{microusd / 1_000_000:,.2f}" if microusd is not None else "–"
