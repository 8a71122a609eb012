"""Recall of redaction over generated examples, and changed messages of transcripts.

    python -m bench.recall [FILE.jsonl[.gz] …]

Prints a table: the source of the kinds, their number, examples, and the share that was redacted. With files,
also the number of their lines and of the changed ones, by kind.
"""

from __future__ import annotations

import gzip
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from redaction import Redaction, redact, redact_bytes
from redaction.gitleaks import gitleaks_rules
from tests.redaction.generated import PLACES, examples

_KEY = Redaction(key=b"bench")


def _source(kind: str, services: set[str], places: set[str]) -> str:
    if kind in services:
        return "services (gitleaks)"
    return "commands, files and services by name" if kind in places else "tokens with a prefix and others"


def print_recall() -> None:
    services = {rule.kind for rule in gitleaks_rules()}
    places = {kind for kind, _, _ in PLACES}
    kinds: dict[str, set[str]] = defaultdict(set)
    total: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for kind, text, secret in examples():
        source = _source(kind, services, places)
        kinds[source].add(kind)
        total[source] += 1
        found[source] += secret not in redact(text.format(secret), redaction=_KEY)[0]
    print("| kinds | number | examples | redacted |\n| --- | --- | --- | --- |")
    for source in sorted(total):
        share = found[source] / total[source]
        print(f"| {source} | {len(kinds[source])} | {total[source]} | {share:.1%} |")


def print_changed(files: Sequence[str]) -> None:
    lines, changed = 0, 0
    by_kind: Counter[str] = Counter()
    for name in files:
        data = Path(name).read_bytes()
        for line in (gzip.decompress(data) if name.endswith(".gz") else data).splitlines():
            _, findings = redact_bytes(line, redaction=_KEY)
            lines += 1
            changed += bool(findings)
            by_kind.update({finding.kind: finding.count for finding in findings})
    print(f"\n{lines:,} lines, {changed:,} changed {dict(by_kind)}")


if __name__ == "__main__":
    print_recall()
    if len(sys.argv) > 1:
        print_changed(sys.argv[1:])
