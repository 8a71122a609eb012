"""Measure the retained references and the cost of compaction on recorded sessions.

    python -m bench.compaction --folder <transcripts> [--policies balanced masking] [--rivals all]
        [--shares 0.25 0.5] [--jobs 2] [--sample 10] [--json figures.json]

Replays each session with more than `--least` tokens step by step (see `bench.replay`) with our policies and
with alternative approaches, and prints a table. The soft trigger is off, because it only prepares a model's
summary in the background and this benchmark calls no model.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing import Pool
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.ours import Ours
from bench.replay import READ_PRICES, Case, Contender, Score, replay
from bench.rivals import RIVALS, Raw
from bench.transcripts import Transcript, transcripts
from compaction.adapters.tiktoken_counter import TiktokenCounter
from compaction.policy import PRESETS, get_policy

CLASSES = ("all", "distant", "far")
DEFAULT_FOLDER = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "trajectories"


@dataclass(frozen=True)
class Row:
    """The results of one contender over all sessions, shares in percent.

    `cost` is the mean relative cost compared with always sending everything, by cache-read price.
    """

    name: str
    share: float
    valid: float
    fits: float
    tokens_kept: float
    recall: dict[str, float]
    references: dict[str, int]
    cost: list[float]
    compactions: int
    plan_ms: float
    plan_ms_most: float


def main() -> None:
    arguments = _arguments()
    found = [t for t in transcripts(arguments.folder) if t.tokens >= arguments.least][:: arguments.sample]
    if not found:
        sys.exit(f"no transcript of {arguments.least} tokens or more in {arguments.folder}")
    names = [*(arguments.rivals if arguments.rivals != ["all"] else RIVALS), *arguments.policies]
    rows: list[Row] = []
    for share in arguments.shares:
        cases = [_case(transcript, share, arguments.least_budget) for transcript in found]
        rows += _measure(cases, names, share, arguments)
    Console(width=None if sys.stdout.isatty() else 150).print(_table(rows, len(found)))
    if arguments.json:
        arguments.json.write_text(json.dumps([vars(row) for row in rows], indent=1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.compaction", description=(__doc__ or "").split("\n")[0])
    folder = os.environ.get("CONTEXTAPP_TRAJECTORIES", DEFAULT_FOLDER)
    parser.add_argument("--folder", type=Path, default=Path(folder), help="folder of recorded sessions")
    parser.add_argument("--policies", nargs="*", default=["balanced"], choices=sorted(PRESETS))
    parser.add_argument("--rivals", nargs="*", default=["all"], choices=["all", *RIVALS])
    parser.add_argument("--shares", nargs="+", type=float, default=[0.25], help="budget / final size")
    parser.add_argument("--least-budget", type=int, default=4_000, help="minimum budget in tokens")
    parser.add_argument("--least", type=int, default=20_000, help="skip sessions with fewer tokens")
    parser.add_argument("--sample", type=int, default=1, help="take every n-th session")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--unchecked", action="store_true", help="do not validate prompts (faster)")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    return parser.parse_args()


def _case(transcript: Transcript, share: float, least_budget: int) -> Case:
    budget = max(least_budget, int(share * transcript.tokens))
    return Case(transcript.name, transcript.format, transcript.messages, budget)


def _measure(
    cases: Sequence[Case], names: Sequence[str], share: float, arguments: argparse.Namespace
) -> Iterator[Row]:
    """Return the rows in the order of `names`. Each session is one job, so it is read and scanned once."""
    jobs = [(case, tuple(names), not arguments.unchecked) for case in cases]
    with Pool(arguments.jobs) as pool:
        results = pool.imap_unordered(_replay_all, jobs)
        description = f"budget {share:.0%} of {len(cases)} sessions"
        scores = list(track(results, total=len(jobs), description=description, console=Console(stderr=True)))
    for name in names:
        yield _row(name, share, [score[name] for score in scores], [score[""] for score in scores])


def _replay_all(job: tuple[Case, tuple[str, ...], bool]) -> dict[str, Score]:
    """Return the score of one session by contender; "" is the score of always sending everything."""
    case, names, check = job
    counter = TiktokenCounter()
    scores = {"": replay(case, Raw(case, counter), check=False)}
    for name in names:
        scores[name] = replay(case, _contender(name, case), check=check)
    return scores


def _contender(name: str, case: Case) -> Contender:
    counter = TiktokenCounter()
    if name in RIVALS:
        return RIVALS[name](case, counter)
    return Ours(case, counter, replace(get_policy(name), soft=0))


def _row(name: str, share: float, scores: Sequence[Score], raw: Sequence[Score]) -> Row:
    total = Score()
    for score in scores:
        total.add(score)
    return Row(
        name=name,
        share=share,
        valid=100 * total.valid / total.steps,
        fits=100 * total.fits / total.steps,
        tokens_kept=100 * total.tokens / total.raw_tokens,
        recall={key: 100 * total.kept[key] / max(1, total.references[key]) for key in CLASSES},
        references={key: total.references[key] for key in CLASSES},
        cost=[fmean(s.cost[i] / r.cost[i] for s, r in zip(scores, raw, strict=True)) for i in (0, 1)],
        compactions=total.compactions,
        plan_ms=fmean(total.plan_ms or [0.0]),
        plan_ms_most=max(total.plan_ms, default=0.0),
    )


def _table(rows: Sequence[Row], sessions: int) -> Table:
    table = Table(title=f"{sessions} sessions; references kept in percent; cost relative to raw")
    prices = [f"cost, read {price}" for price in READ_PRICES]
    heads = ("policy", "budget", "valid", "fits", "tokens", *CLASSES, *prices, "edits made", "ms per plan")
    for head in heads:
        table.add_column(head, justify="left" if head == "policy" else "right")
    for row in rows:
        shares = (row.valid, row.fits, row.tokens_kept, *row.recall.values())
        costs = (f"{cost:.2f}" for cost in row.cost)
        plan = f"{row.plan_ms:.0f} / {row.plan_ms_most:.0f}"
        cells = (f"{row.share:.0%}", *(f"{s:.1f}" for s in shares), *costs, str(row.compactions), plan)
        table.add_row(row.name, *cells)
    return table


if __name__ == "__main__":
    main()
