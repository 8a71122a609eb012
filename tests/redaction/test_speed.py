"""Redaction takes little time compared with the rest of a push (ratios within one run)."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from functools import partial

import orjson
import pytest

from redaction import redact_bytes
from tests.redaction.secrets import KEY, TOKENS

#: Maximum time for clean messages, as a multiple of parsing the same bytes with orjson. Measured: 4 to 6.
MOST_TIMES_ORJSON = 12

LINES = [
    "def plan(view: View, policy: Policy, counter: TokenCounter) -> tuple[View, tuple[Edit, ...]]:",
    '    return replace(message, parts=tuple(part for part in message.parts if part), note="kept")',
    "2031-04-05 12:00:01 INFO  request id=3f2504e0-4f89-41d3-9a0c-0305e82c3301 took 12.5 ms, status 200",
    "ok  \tgithub.com/acme/tool/internal/store\t0.412s\tcoverage: 81.3% of statements in ./...",
    "The session keeps its budget, and nothing that was pushed is ever changed by a compaction.",
]


def message(size: int) -> bytes:
    choice = random.Random(size).choice
    text = ""
    while len(text) < size:
        text += choice(LINES) + "\n"
    return json.dumps({"role": "tool", "tool_call_id": "call_1", "content": text}).encode()


def fastest(*calls: Callable[[], object], times: int = 30) -> list[float]:
    """Return the shortest time of each call, in seconds. They alternate, so that load slows all of them."""
    best = [float("inf")] * len(calls)
    for _ in range(times):
        for number, call in enumerate(calls):
            start = time.thread_time()
            call()
            best[number] = min(best[number], time.thread_time() - start)
    return best


def costs_of(*texts: bytes) -> list[float]:
    """Return the time to redact each text, in seconds."""
    return fastest(*(partial(redact_bytes, text, redaction=KEY) for text in texts), times=3)


@pytest.mark.parametrize("size", [2_700, 84_000])
def test_a_clean_message_takes_little_time(size: int) -> None:
    raw = message(size)
    redacting, parsing = fastest(lambda: redact_bytes(raw, redaction=KEY), lambda: orjson.loads(raw))
    assert redacting < parsing * MOST_TIMES_ORJSON


UNITS = (
    "password = ",
    "token:",
    "token:a1",
    "name: token, value: ",
    "-----BEGIN RSA PRIVATE KEY-----\n",
    "eyJ",
    "://a:b",
    "A" * 50,
    '\\"',
    "[redacted:",
    "put-parameter SecureString ",
)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [*UNITS, TOKENS[0][1] + " "])
def test_time_is_linear_in_the_length_of_the_text(unit: str) -> None:
    small, large = (json.dumps(unit * (size // len(unit))).encode() for size in (20_000, 160_000))
    costs = costs_of(small, large)
    assert costs[1] < costs[0] * 8 * 3


@pytest.mark.slow
@pytest.mark.parametrize("separator", [",", "},{"])
def test_time_is_linear_in_the_number_of_redacted_thoughts(separator: str) -> None:
    thought = f'"thinking":"{TOKENS[0][1]}"'
    small, large = (f"[{{{separator.join([thought] * count)}}}]".encode() for count in (300, 2_400))
    costs = costs_of(small, large)
    assert costs[1] < costs[0] * 8 * 2


#: Texts that look like secrets everywhere, and their maximum cost as a multiple of code with one assignment
#: per line. Measured: up to 10; bench/redaction.py has the figures.
DENSE = (
    "curl -u a:b1 ",
    "kind: Secret\n",
    '"kind": "Secret", "data": {',
    "**Password:** `a1`",
    "Password=x1;",
    "datadog=a1",
    "token:",
    "token: ",
    "token=a1",
    "token:a1",
    "token:a1 ",
    "token='a1",
    "password=x ",
    "AKIA",
    "ghp_",
)
MOST_TIMES_TYPICAL = 30


@pytest.mark.slow
@pytest.mark.parametrize("unit", DENSE)
def test_dense_assignments_cost_little_more_than_typical_ones(unit: str) -> None:
    typical = json.dumps("\n".join(f'{line}  # token = "x"' for line in LINES) * 100).encode()
    dense = json.dumps(unit * (len(typical) // len(unit))).encode()
    costs = costs_of(typical, dense)
    assert costs[1] / len(dense) < costs[0] / len(typical) * MOST_TIMES_TYPICAL
