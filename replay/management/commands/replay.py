"""`manage.py replay PATH…`: compare policies on log files, without a server or database."""

from __future__ import annotations

import json
import os
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from dataclasses import asdict
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import pluralize
from rich.console import Console
from rich.progress import track

from compaction.policy import PRESETS, Policy
from compaction.replay.prices import Prices
from compaction.replay.result import totals
from compaction.replay.served import without_model
from compaction.replay.setting import Setting
from replay.offline.compare import Compared, Comparison, compare_logs
from replay.offline.report import dollars, table
from replay.selectors.price_tables import named_prices
from replay.selectors.run_settings import limits_of
from sessions.management.log_paths import add_path_arguments, selected_logs

#: Width of the table if the output is not a terminal.
_WIDTH = 150

#: Maximum number of sessions without a price that are named.
_MAX_NAMES = 5

#: Relative difference up to which a predicted cost counts as accurate.
_ACCURATE = 0.10


class Command(BaseCommand):
    help = (
        "Replay session logs of agents under other policies and budgets, and print a table. Stores nothing."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_path_arguments(parser)
        parser.add_argument(
            "--policies",
            nargs="+",
            type=_policy,
            default=list(PRESETS.values()),
            metavar="PRESET|JSON",
            help='presets, or policies such as {"preset": "balanced", "target": 0.3}; default: all presets',
        )
        parser.add_argument(
            "--ratios",
            nargs="+",
            type=_ratio,
            help="budgets as shares of each session's largest prompt; "
            "default without --budgets: 1.00 0.50 0.20",
        )
        parser.add_argument("--budgets", nargs="+", type=_tokens, help="budgets in the provider's tokens")
        parser.add_argument(
            "--prices",
            type=_prices,
            metavar="MODEL|RATES",
            help="use the prices of this model, or input=3,read=0.3,write=3.75,output=15 ($ per million)",
        )
        parser.add_argument(
            "--least",
            type=int,
            default=0,
            metavar="TOKENS",
            help="skip sessions whose largest prompt has fewer tokens",
        )
        parser.add_argument(
            "--sessions", action="store_true", help="also print the predicted cost of each session"
        )
        parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
        parser.add_argument(
            "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="number of processes"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.monotonic()
        sources = selected_logs(options)
        settings = _settings(options)
        comparison = Comparison(settings=settings, prices=options["prices"], min_tokens=options["least"])
        logs = compare_logs(sources, comparison, jobs=options["jobs"])
        quiet = Console(stderr=True, quiet=options["verbosity"] == 0)
        shown = track(logs, total=len(sources), description="Replaying", console=quiet)
        found = [session for log in shown for session in log]
        if not found:
            raise CommandError("The logs contain no session with a model call in a supported format.")
        self._print_results(found, settings, time.monotonic() - started, options)

    def _print_results(
        self, found: Sequence[Compared], settings: Sequence[Setting], seconds: float, options: dict[str, Any]
    ) -> None:
        sums = [totals(session.totals[index] for session in found) for index in range(len(settings))]
        calls = sum(session.calls for session in found)
        title = (
            f"{len(found):,} session{pluralize(len(found))}, {calls:,} model call{pluralize(calls)}, "
            f"{seconds:.0f} s"
        )
        text = StringIO()
        width = None if self.stdout.isatty() else _WIDTH
        Console(file=text, width=width, force_terminal=self.stdout.isatty()).print(
            table(settings, sums, title=title)
        )
        self.stdout.write(text.getvalue())
        self._print_unpriced(found)
        self._print_accuracy(found, settings, options)
        if options["json"]:
            rows = [
                {"policy": s.policy.name, "budget": s.limit.label, **asdict(total)}
                for s, total in zip(settings, sums, strict=True)
            ]
            options["json"].write_text(json.dumps(rows, indent=1))

    def _print_unpriced(self, found: Sequence[Compared]) -> None:
        """Explain why the table has no costs, if the model of a session has no price."""
        names = [session.name for session in found if session.totals[0].cost is None]
        if names:
            more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
            self.stdout.write(
                f"Costs are missing because the model of {len(names):,} session{pluralize(len(names))} has "
                f"no known price: {', '.join(names[:_MAX_NAMES])}{more}. "
                "Set --prices to price all sessions alike."
            )

    def _print_accuracy(
        self, found: Sequence[Compared], settings: Sequence[Setting], options: dict[str, Any]
    ) -> None:
        """Compare the predicted cost under `off` with the actual cost from the logs."""
        off = next((index for index, setting in enumerate(settings) if setting.policy.name == "off"), None)
        if off is None:
            return
        known = [(s, s.totals[off].cost, s.actual) for s in found]
        priced = [(s, cost, actual) for s, cost, actual in known if cost is not None and actual]
        if not priced:
            return
        predicted, actual = sum(cost for _, cost, _ in priced), sum(actual for *_, actual in priced)
        accurate = sum(abs(cost / actual - 1) <= _ACCURATE for _, cost, actual in priced)
        self.stdout.write(
            f"Actual cost of {len(priced):,} session{pluralize(len(priced))}"
            f"{' at these prices' if options['prices'] else ''}: {dollars(actual)}. "
            f"Predicted under `off`: {dollars(predicted)} "
            f"({predicted / actual - 1:+.1%}, {accurate:,} within {_ACCURATE:.0%})."
        )
        if options["sessions"]:
            for session, cost, real in sorted(priced, key=lambda item: -abs(item[1] / item[2] - 1)):
                self.stdout.write(
                    f"{session.name}  {session.calls:>5} calls  {dollars(real)} actual  "
                    f"{dollars(cost)} predicted  {cost / real - 1:+.1%}"
                )


def _settings(options: dict[str, Any]) -> tuple[Setting, ...]:
    limits = limits_of(ratios=options["ratios"] or (), budgets=options["budgets"] or ())
    policies = [without_model(policy) for policy in options["policies"]]
    return tuple(Setting(policy=policy, limit=limit) for limit, policy in product(limits, policies))


def _policy(text: str) -> Policy:
    """Return a preset, or a policy as JSON. Without a `name`, its text becomes its name."""
    if not text.lstrip().startswith("{"):
        text = json.dumps({"preset": text, "name": text})
    try:
        return Policy.from_json({"name": text, **json.loads(text)})
    except ValueError as error:
        raise ArgumentTypeError(f"invalid policy: {error}") from None


def _ratio(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise ArgumentTypeError("a ratio must be above 0 and at most 1")
    return value


def _tokens(text: str) -> int:
    value = int(text.replace(",", "").replace("_", ""))
    if value < 1:
        raise ArgumentTypeError("a budget must be at least 1 token")
    return value


def _prices(text: str) -> Prices:
    try:
        return named_prices(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
