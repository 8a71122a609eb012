"""CPU time of redaction per byte, for text that looks like secrets everywhere.

    python -m bench.redaction

Prints a table: the repeated unit, and microseconds per byte for 100 kB and for 800 kB of it.
"""

from __future__ import annotations

import json
import time

from redaction import Redaction, redact_bytes

UNITS = (
    "The quick brown fox. ",
    "token: str = None  # a parameter of the function\n",
    "token:",
    "token: ",
    "token=a1",
    "token:a1 ",
    "token='a1",
    "password=x ",
    "api_key=a ",
    "Bearer ",
    "http://u:p@",
    "-----BEGIN RSA PRIVATE KEY-----\n",
    "AKIA",
    "curl -u a:b1x ",
    "kind: Secret\n",
    "ConvertTo-SecureString ",
    "Password=x1;",
    "ghp_",
    "eyJ",
    "[redacted:",
    '\\"',
)


def cost(unit: str, size: int, *, times: int = 3) -> float:
    """Return microseconds of CPU time per byte, the best of `times`."""
    raw = json.dumps({"role": "user", "content": unit * (size // len(unit))}).encode()
    best = float("inf")
    for _ in range(times):
        start = time.thread_time()
        redact_bytes(raw, redaction=Redaction(key=b"bench"))
        best = min(best, time.thread_time() - start)
    return best / len(raw) * 1e6


def main() -> None:
    print("| repeated | 100 kB | 800 kB |\n| --- | --- | --- |")
    for unit in UNITS:
        print(f"| `{unit.strip()!r}` | {cost(unit, 100_000):.3f} | {cost(unit, 800_000):.3f} |")


if __name__ == "__main__":
    main()
