"""Measure how background compaction affects a running agent, and the savings on recorded sessions.

    python -m bench.background                # fetches while a summary takes 3 seconds
    python -m bench.background --transcripts  # recorded sessions with the soft trigger

The first starts a separate instance with a fake provider and pushes 60 turns, one every 50 ms, to a session
with a compaction in progress and to a similar session without one. Compare the ratio.

The second replays each session step by step. A background compaction takes effect one step after its trigger.
Its recap is deterministic, so the cost does not include a model.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from multiprocessing import Pool
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.compaction import DEFAULT_FOLDER
from bench.http import Http, quantiles
from bench.ours import Ours
from bench.replay import Case, replay
from bench.rivals import Raw
from bench.transcripts import transcripts
from compaction.adapters.tiktoken_counter import TiktokenCounter
from compaction.policy import Policy
from compaction.replay.prompts import GrowingPrompt
from compaction.replay.served import Served
from compaction.replay.transcript import RecordedCall
from compaction.triggers import TriggerState, evaluate
from tests.api.talk import whole_turn
from tests.provider.behaviours import summary
from tests.provider.server import FakeProvider
from tests.running.instance import Instance, running

TURNS, PAUSE, SUMMARY_SECONDS, ROUNDS = 60, 0.05, 3.0, 3


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.background", description=(__doc__ or "").split("\n")[0])
    folder = os.environ.get("CONTEXTAPP_TRAJECTORIES", DEFAULT_FOLDER)
    parser.add_argument("--transcripts", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path(folder))
    parser.add_argument("--share", type=float, default=0.25, help="budget / final size")
    parser.add_argument("--least", type=int, default=20_000, help="skip sessions with fewer tokens")
    parser.add_argument("--sample", type=int, default=1, help="take every n-th session")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print(json.dumps(recorded(options) if options.transcripts else fetches(), indent=1))


# -- An agent at work ---------------------------------------------------------------------------


def fetches() -> dict[str, Any]:
    """Measure fetches in milliseconds, alternately with and without a summary in progress."""
    with tempfile.TemporaryDirectory(prefix="ctxbench") as folder, FakeProvider() as provider:
        provider.otherwise = summary(delay=SUMMARY_SECONDS)
        environment = {"CONTEXTAPP_ANTHROPIC_API_KEY": "bench", "ANTHROPIC_BASE_URL": provider.url}
        instance = Instance(Path(folder) / "home", Path(folder) / "out", **environment)
        with running(instance):
            http = Http(instance.port, (instance.home / "api-key").read_text().strip())
            _at_work(http, "warm", compact=False)
            idle, during = [], []
            for number in range(ROUNDS):
                idle += _at_work(http, f"idle-{number}", compact=False)
                during += _at_work(http, f"during-{number}", compact=True)
    rows = {"idle": quantiles(idle), "during": quantiles(during)}
    return rows | {"ratio_p95": round(rows["during"]["p95"] / rows["idle"]["p95"], 2)}


def _at_work(http: Http, name: str, *, compact: bool) -> list[float]:
    body = {"id": name, "budget": {"input_tokens": 40_000}, "policy": {"soft": 0, "hard": 0}}
    _ask(http, 201, "POST", "sessions/", body)
    for number in range(40):
        _ask(http, 201, "POST", f"sessions/{name}/turns/", {"messages": whole_turn(number)})
    if compact:
        _ask(http, 202, "POST", f"sessions/{name}/compact/", {})
    took = []
    begun = time.perf_counter()
    for number in range(TURNS):
        time.sleep(max(0.0, begun + number * PAUSE - time.perf_counter()))
        pushed = {"messages": whole_turn(100 + number, lines=5)}
        _ask(http, 201, "POST", f"sessions/{name}/turns/", pushed)
        started = time.perf_counter()
        _ask(http, 200, "GET", f"sessions/{name}/prompt/")
        took.append(1_000 * (time.perf_counter() - started))
    return took


def _ask(http: Http, expected: int, method: str, path: str, body: Any = None) -> None:
    data = b"" if body is None else json.dumps(body).encode()
    status, answer = http.request(method, f"/api/v1/{path}", data)
    if status != expected:
        raise SystemExit(f"HTTP {status}: {answer[:300]!r}")


# -- Recorded sessions --------------------------------------------------------------------------


class Late(Served):
    """A session with the soft trigger whose background compactions take effect one step late."""

    pending: str | None = None

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.fired: list[tuple[str, int, int | None]] = []  #: trigger, tokens, previous cursor

    def prompt(self, call: RecordedCall) -> GrowingPrompt:
        self._append(call)
        trigger, self.pending = self.pending, None
        if trigger is not None:
            self._compact(trigger)
        tokens = self._prompt.tokens
        state = TriggerState(
            tokens=tokens, budget=self._budget.input_tokens, compacted_tokens=self._compacted_tokens
        )
        due = evaluate(state, self._policy)
        if due is not None:
            self.fired.append((due.name, tokens, self._compacted_tokens))
            self._compacted_tokens = tokens
            if due.is_background:
                self.pending = due.name
            else:
                self._compact(due.name)
        return self._prompt


def recorded(options: argparse.Namespace) -> dict[str, Any]:
    """Return compactions per session, re-cached tokens and relative cost over the sessions of a folder."""
    found = [t for t in transcripts(options.folder) if t.tokens >= options.least][:: options.sample]
    cases = [Case(t.name, t.format, t.messages, max(4_000, int(options.share * t.tokens))) for t in found]
    with Pool(options.jobs) as pool:
        rows = pool.map(_replayed, cases, chunksize=1)
    triggers = sum((Counter(row["triggers"]) for row in rows), Counter())
    compactions = [row["compactions"] for row in rows]
    return {
        "sessions": len(rows),
        "compactions_a_session": {"mean": round(fmean(compactions), 1), "most": max(compactions)},
        "triggers": dict(triggers),
        "without_a_model": f"{sum(row['free'] for row in rows)} of {sum(compactions)}",
        "tokens_rebilled_a_compaction": round(sum(r["rebilled"] for r in rows) / max(1, sum(compactions))),
        "cost_against_raw": round(fmean(row["cost"] for row in rows), 3),
        "valid_and_fitting_prompts": f"{sum(r['good'] for r in rows)} of {sum(r['steps'] for r in rows)}",
        "firings_within_refire_delta": sum(row["early"] for row in rows),
    }


def _replayed(case: Case) -> dict[str, Any]:
    policy, counter = Policy(), TiktokenCounter()
    contender = Ours(case, counter, policy, served=Late)
    served = contender.served
    assert isinstance(served, Late)
    score = replay(case, contender)
    raw = replay(case, Raw(case, counter), check=False)
    least = policy.refire_delta * case.budget
    return {
        "compactions": len(served.records),
        "triggers": Counter(trigger for trigger, _, _ in served.fired),
        "free": sum(not record.summarizer_needed for record in served.records),
        "rebilled": sum(record.tokens_rebilled for record in served.records),
        "cost": score.cost[0] / raw.cost[0],
        "good": min(score.valid, score.fits),
        "steps": score.steps,
        # above the budget, no rule delays a compaction
        "early": sum(
            cursor is not None and tokens - cursor < least and tokens <= case.budget
            for _, tokens, cursor in served.fired
        ),
    }


if __name__ == "__main__":
    main()
