"""Measure the CPU time of a compaction plan, and of an additional message in short and long sessions.

    python -m bench.plan [--tokens 200000 30000] [--runs 15] [--json figures.json]

Builds sessions of the given sizes from this project's files: an agent reads, edits and searches them, runs
commands and thinks. Prints the CPU milliseconds of a plan of the hard trigger, in total and by step (median
of the runs): in a process that has seen none of the session, in one that has seen its identifiers but not its
texts, and in one that has planned a compaction of it before. Then prints the CPU time of the later plans of a
growing session, each with the recap of the one before, and that of adding one message at position 100 and at
position 10,000.

    python -m bench.plan --first [--tokens 200000 30000]

Prints only the CPU milliseconds of the first and the second plan of each session, in a process that has
planned a compaction of another session.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median

from bench.load import Load
from compaction import dialects, text_cache
from compaction.adapters.tiktoken_counter import TiktokenCounter
from compaction.continuation import Continuation
from compaction.identifiers import extract as references
from compaction.identifiers import texts as text_names
from compaction.messages import JSON, Message, Role
from compaction.planning.pipeline import PlanRequest, plan
from compaction.policy import Budget, get_policy
from compaction.replay.served import Served
from compaction.replay.transcript import RecordedCall, Transcript
from compaction.sizes.tokens import name_sizes
from compaction.strategies import STRATEGIES
from compaction.triggers import TriggerState, evaluate
from compaction.view import apply

ROOT = Path(__file__).resolve().parent.parent
FORMAT = "anthropic"
COUNTER = TiktokenCounter()
POLICY = get_policy("balanced")

#: Tokens of a message, on average.
_MESSAGE_TOKENS = 333

#: Tokens of the budget of a session that grows.
_BUDGET = 30_000


def main() -> None:
    arguments = _arguments()
    sessions = [session(tokens, max(1, tokens // _MESSAGE_TOKENS)) for tokens in arguments.tokens]
    if arguments.first:
        _plan(other := session(60_000, 180, seed=2), sum(message.tokens for message in other))
    gc.collect()
    gc.freeze()  # exclude loaded modules from garbage collection, as workers do
    if arguments.first:
        for messages in sessions:
            tokens = sum(message.tokens for message in messages)
            first, second = (_median_ms(partial(_plan, messages, tokens), 1) for _ in range(2))
            print(f"{tokens:>10,} {first:>10,.1f} {second:>10,.1f}")
        return
    figures = [_figures(messages, arguments.runs) for messages in sessions]
    figures.append({f"budget {_BUDGET:,}, later": _later_ms()})
    early, late = (_message_ms(sessions[0], position) for position in (100, 10_000))
    figures.append({"a message at 100": early, "a message at 10,000": late, "ratio": late / early})
    for group in figures:
        for name, figure in group.items():
            print(f"{name:20} {figure:>10,.3f}" if isinstance(figure, float) else f"{name:20} {figure:>10,}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def _figures(messages: tuple[Message, ...], runs: int) -> dict[str, float]:
    """Return the figures of a session."""
    tokens = sum(message.tokens for message in messages)
    return {
        "messages": len(messages),
        "tokens": tokens,
        "nothing known": _median_ms(lambda: _plan(messages, tokens), runs, _forget_all),
        "names known": _median_ms(lambda: _plan(messages, tokens), runs, _forget_texts),
        "texts known": _median_ms(lambda: _plan(messages, tokens), runs),
        **_steps(messages, tokens, runs),
    }


def _later_ms() -> float:
    """Return the median CPU milliseconds of the plans of a session of 200 turns, without the first one."""
    load = Load(seed=1)
    items = [item for _ in range(200) for item in load.messages()]
    messages = dialects.parse(items, format=FORMAT, counter=COUNTER)
    messages = tuple(replace(message, turn=message.position // 2) for message in messages)
    transcript = Transcript(name="growing", format=FORMAT, messages=messages, calls=())
    served, found = Served(transcript, POLICY, COUNTER, budget=_BUDGET), list[float]()
    for message in messages[1:]:
        if message.role is Role.ASSISTANT:
            planned, at = len(served.records), message.position
            started = time.process_time()
            served.prompt(RecordedCall(turn=message.turn, start=0, answer=at))
            if len(served.records) > planned:
                found.append(1_000 * (time.process_time() - started))
    return median(found[1:])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.plan", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[200_000, 30_000])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--first", action="store_true", help="measure only the first plans of a process")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    return parser.parse_args()


def session(tokens: int, count: int, *, seed: int = 1) -> tuple[Message, ...]:
    """Return a session with this many messages and about this many tokens. Outputs are cut to size."""
    files = [path for folder in ("compaction", "sessions", "docs") for path in (ROOT / folder).rglob("*.*")]
    sources = [path for path in sorted(files) if path.suffix in (".py", ".md") and path.stat().st_size]
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in sources}
    size = 4 * tokens // count  # characters, an initial estimate
    for _ in range(4):
        items = list(islice(_dialogue(texts, size, seed), count))
        messages = dialects.parse(items, format=FORMAT, counter=COUNTER)
        size = size * tokens // sum(message.tokens for message in messages)
    return tuple(replace(message, turn=message.position // 2) for message in messages)


def _dialogue(texts: dict[str, str], size: int, seed: int) -> Iterator[JSON]:
    """Yield items endlessly: a request, then ten calls with outputs of about twice `size` characters."""
    chance = random.Random(seed)
    paths = list(texts)
    step = 0
    while True:
        yield {"role": "user", "content": f"Go on with {chance.choice(paths)}, and see that the tests pass."}
        for _ in range(10):
            path = chance.choice(paths)
            lines = texts[path].splitlines()
            start = chance.randrange(len(lines))
            length = int(size * chance.lognormvariate(0.1, 1.0))
            yield _call(f"call_{step}", path, lines[start : start + 12], chance)
            shown = (f"{n:6}→{line}" for n, line in enumerate((lines[start:] + lines) * 9, start + 1))
            text = "\n".join(shown)[:length] or "done"
            result = {"type": "tool_result", "tool_use_id": f"call_{step}", "content": text}
            yield {"role": "user", "content": [result]}
            step += 1
        yield {"role": "assistant", "content": f"{path} is done because {lines[start].strip() or 'it was'}."}


def _call(call_id: str, path: str, lines: list[str], chance: random.Random) -> JSON:
    """Return an assistant message with thinking, text and a tool call."""
    words = " ".join(" ".join(lines).split())
    name, arguments = chance.choice(
        (
            ("Read", {"file_path": path}),
            ("Read", {"file_path": path, "offset": chance.randrange(200)}),
            ("Edit", {"file_path": path, "old_string": "\n".join(lines[:6]), "new_string": "\n".join(lines)}),
            ("Grep", {"pattern": lines[0].strip(), "path": path.rpartition("/")[0]}),
            ("Bash", {"command": f"pytest -q {path} | tail -{chance.randrange(5, 50)}"}),
        )
    )
    return {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": f"In {path}: {words}", "signature": "c2lnbmVk"},
            {"type": "text", "text": f"I'll look at {path} instead: {words[:120]}"},
            {"type": "tool_use", "id": call_id, "name": name, "input": arguments},
        ],
    }


def _plan(messages: tuple[Message, ...], tokens: int) -> None:
    """Run a plan of the hard trigger for the whole session, as a worker would after loading it."""
    plan(_request(messages, tokens))


def _request(messages: tuple[Message, ...], tokens: int) -> PlanRequest:
    return PlanRequest(
        view=apply((), messages),
        policy=POLICY,
        counter=COUNTER,
        budget=Budget(input_tokens=tokens),
        trigger="hard",
    )


def _forget_all() -> None:
    _forget_texts()
    references.forget()
    name_sizes.cache_clear()


def _forget_texts() -> None:
    text_names.forget()
    text_cache.forget()


def _median_ms(work: Callable[[], None], runs: int, before: Callable[[], None] = lambda: None) -> float:
    """Return the median CPU milliseconds of `work`, with a call of `before` before each run."""
    found = []
    for _ in range(runs):
        before()
        started = time.process_time()
        work()
        found.append(1_000 * (time.process_time() - started))
    return median(found)


def _steps(messages: tuple[Message, ...], tokens: int, runs: int) -> dict[str, float]:
    """Return the median CPU milliseconds of each step that made edits, in the order of the plan."""
    found: dict[str, list[float]] = {}
    for _ in range(runs):
        started = time.process_time()
        context = _request(messages, tokens).context()
        view = context.start
        for name in ("layout", *STRATEGIES):
            if name != "layout" and view.tokens > context.goal:
                view = STRATEGIES[name].run(view, context).view
            ended = time.process_time()
            found.setdefault(name, []).append(1_000 * (ended - started))
            started = ended
    return {f"- {name}": took for name, times in found.items() if (took := median(times)) >= 0.05}


def _message_ms(messages: tuple[Message, ...], position: int) -> float:
    """Return the core's CPU milliseconds for an additional message at `position`."""
    items = [message.source for message in messages if message.role is not Role.SYSTEM][:200]
    seam = Continuation()
    for n in range(position):
        seam = seam.after((messages[n % len(messages)],), FORMAT)

    def push() -> None:
        after = seam
        for n, item in enumerate(items):
            pushed = dialects.parse([item], format=FORMAT, start_position=position + n, counter=COUNTER)
            after = after.after(pushed, FORMAT)
            evaluate(TriggerState(tokens=pushed[0].tokens * position, budget=200_000), POLICY)

    return _median_ms(push, 15) / len(items)


if __name__ == "__main__":
    main()
