"""Generated tool outputs for the sample session: modules, search results, listings and test runs."""

from __future__ import annotations

import random

_NOUNS = ("tide", "station", "harbour", "offset", "reading", "window", "basin", "gauge", "epoch", "sensor")
_VERBS = ("predict", "load", "join", "shift", "render", "adjust", "smooth", "align", "check", "publish")
_REMARKS = (
    "The almanac counts from noon, the office from midnight.",
    "A gauge that is being serviced repeats its last reading.",
    "Kept apart from the API so that the edge can import it.",
    "Heights are centimetres above chart datum.",
    "The order matters: a later row replaces an earlier one.",
)


def python_module(path: str, sections: int) -> str:
    """Return a module with `sections` functions and the line numbers that the client's read tool adds."""
    chance = random.Random(path)  # noqa: S311 - the same output for the same path
    lines = ['"""' + chance.choice(_REMARKS) + '"""', "", "from __future__ import annotations", ""]
    lines += [
        "from datetime import datetime, timedelta, tzinfo",
        "",
        "from tidewater.errors import TideError",
        "",
    ]
    for _ in range(sections):
        lines += _function(chance)
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, start=1))


def search_hits(pattern: str, hits: int) -> str:
    """Return search results: path, line number and line."""
    chance = random.Random(f"{pattern}{hits}")  # noqa: S311
    return "\n".join(
        f"{_path(chance)}:{chance.randrange(5, 420)}:    {_statement(chance)}  # {pattern}"
        for _ in range(hits)
    )


def listing(entries: int) -> str:
    """Return a listing of the source folder."""
    chance = random.Random(entries)  # noqa: S311
    return "\n".join(_path(chance) for _ in range(entries))


def test_report(target: str, passed: int, failed: tuple[str, ...]) -> str:
    """Return pytest output, with a traceback for each failure."""
    chance = random.Random(f"{target}{passed}{failed}")  # noqa: S311
    rows = [f"{'.' * 60} [{share:>3}%]" for share in range(12, 100, 12)]
    for name in failed:
        rows += ["", f"{'_' * 24} {name} {'_' * 24}", ""]
        rows += [f"    {_statement(chance)}" for _ in range(14)]
        rows += [
            f"E       AssertionError: assert '2031-10-26 04:35' == '2031-10-26 03:35'  ({_path(chance)})"
        ]
    rows += [f"FAILED {target}::{name} - AssertionError" for name in failed]
    summary = f"{len(failed)} failed, " if failed else ""
    return "\n".join([*rows, f"{summary}{passed} passed in {passed / 41:.2f}s"])


def _function(chance: random.Random) -> list[str]:
    name = f"{chance.choice(_VERBS)}_{chance.choice(_NOUNS)}"
    lines = ["", f"def {name}({chance.choice(_NOUNS)}: Station, at: datetime, zone: tzinfo) -> Tide:"]
    lines += [f'    """{chance.choice(_REMARKS)}"""']
    lines += [f"    {_statement(chance)}" for _ in range(chance.randrange(6, 16))]
    lines += [f"    if not {chance.choice(_NOUNS)}:"]
    lines += [f'        raise TideError("no {chance.choice(_NOUNS)} at {{at}}")']
    return [*lines, f"    return {chance.choice(_NOUNS)}", ""]


def _statement(chance: random.Random) -> str:
    left, right, verb = chance.choice(_NOUNS), chance.choice(_NOUNS), chance.choice(_VERBS)
    return chance.choice(
        (
            f"{left} = {verb}_{right}({right}, at + timedelta(minutes={chance.randrange(1, 90)}))",
            f"{left}s = [row for row in {right}.rows if row.height > {chance.randrange(80, 420)}]",
            f'log.debug("{verb} %s for %s", {left}.code, {right})',
            f"{left} = max({left}, {right}.{verb}ed_at.astimezone(zone))",
        )
    )


def _path(chance: random.Random) -> str:
    return f"src/tidewater/{chance.choice(_NOUNS)}s/{chance.choice(_VERBS)}_{chance.choice(_NOUNS)}.py"
