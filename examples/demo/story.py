"""The script of the demo: the model finds and fixes the bugs of the scratch project.

Each step is one turn. The tools actually run; only the model's responses are scripted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from demo.faults import FAULTS, Fault
from scripted_model import Call, Reply, Request, Step

TASK = (
    "Our March invoices are wrong. Customers complain about amounts, and the nightly job logs errors. Read "
    "the README, find out what is wrong in parcelpost, fix it so that all tests pass, and check the totals "
    "of data/shipments.csv. Do not change the tests."
)
TESTS = "python -m unittest"
_QUESTION = "Are the March totals correct once the tests pass?"
_ANSWERED = {"op": "resolve", "field": "open_questions", "item": _QUESTION}
_FAILED = "^FAIL: |^ERROR: test_(dec|byte)|^Ran |^FAILED"


def read(path: str, offset: int = 1, limit: int = 2000) -> Call:
    where = {} if (offset, limit) == (1, 2000) else {"offset": offset, "limit": limit}
    return Call("read_file", {"path": path, **where})


def grep(pattern: str, path: str) -> Call:
    return Call("grep", {"pattern": pattern, "path": path})


def run(command: str) -> Call:
    return Call("run_command", {"command": command})


def edit(path: str, old: str, new: str) -> Call:
    return Call("edit_file", {"path": path, "old": old, "new": new})


def remember(reason: str, *operations: dict[str, str]) -> Call:
    return Call("update_working_memory", {"reason": reason, "operations": list(operations)})


def add(field: str, item: str) -> dict[str, str]:
    return {"op": "add", "field": field, "item": item}


def say(text: str, *calls: Call) -> Reply:
    return Reply(text, calls)


def expand(text: str, about: str, pattern: str, instead: Call) -> Callable[[Request], Reply]:
    """Retrieve lines of an output that is no longer in the prompt. If it still is there, call `instead`."""

    def reply(request: Request) -> Reply:
        handle = request.handle(about)
        call = Call("expand_clip", {"handle": handle, "grep": pattern}) if handle else instead
        return Reply(text, (call,))

    return reply


def story() -> Iterator[Step]:
    """Yield all turns in order."""
    yield from _explore()
    for fault in FAULTS:
        yield from _fix(fault)
    yield from _check_totals()
    yield from _finish()


def _fix(fault: Fault) -> Iterator[Step]:
    yield say(f"Next: {fault.title}.", *(read(path) for path in fault.reads))
    yield say(fault.thought, *(grep(pattern, path) for pattern, path in fault.greps))
    notes = [add("decisions", fault.decision), add("important_files", fault.path), add("next", fault.next)]
    old = fault.old
    if fault.wrong is not None:
        yield say("I'll try the obvious change first.", edit(fault.path, old, fault.wrong))
        yield say("Does that work?", run(f"{TESTS} {fault.tests}"))
        yield say("It doesn't. Let me look at the file again.", read(fault.path))
        notes.append(add("tried", fault.failed))
        old = fault.wrong
    yield say(fault.change, edit(fault.path, old, fault.new))
    yield say("Running the tests of this module.", run(f"{TESTS} -v {fault.tests}"))
    yield say(f"Recording the decision: {fault.decision}.", remember(fault.title, *notes))


def _explore() -> Iterator[Step]:
    yield say(
        "Starting with the README and the project structure.",
        read("README.md"),
        run("find . -name '*.py' | sort | xargs wc -l"),
    )
    yield say(
        "Recording the task.",
        remember(
            "the task",
            add(
                "task", "Fix parcelpost so that all tests pass without changing the tests; check the totals."
            ),
            add("open_questions", _QUESTION),
            add("next", "Run all tests."),
        ),
    )
    yield say("Running all tests to see what fails.", run(TESTS))
    yield expand(
        "That is long. I only need the names of the failed tests.",
        "unittest",
        _FAILED,
        run(f"{TESTS} 2>&1 | grep -E '{_FAILED}'"),
    )
    yield say("The log of the nightly job may contain more clues.", grep("ERROR|WARNING", "logs/nightly.log"))
    yield say("What does a successful night look like?", run("sed -n 1,60p logs/nightly.log"))
    yield say("Now the export itself.", read("data/shipments.csv", 1, 80))
    yield say(
        "How many rows have decimal commas, and how many postcodes are at the end of a range?",
        run("grep -c '[0-9],[0-9]' data/shipments.csv"),
        run("cut -d';' -f4 data/shipments.csv | grep -c '99$'"),
    )


_WEIGHTS = """python - <<'EOF'
from pathlib import Path
from parcelpost import parsing, rates
shipments = parsing.read(Path("data/shipments.csv"))
for each in shipments[:120]:
    print(each.reference, each.customer, each.postcode, rates.chargeable_weight(each.parcel))
print("heaviest", max(rates.chargeable_weight(each.parcel) for each in shipments))
EOF"""


def _check_totals() -> Iterator[Step]:
    yield say("Now all tests together.", run(TESTS))
    yield say(
        "All pass. Checking the totals of the month by customer and by zone.",
        run("python -m parcelpost data/shipments.csv"),
        run("python -m parcelpost data/shipments.csv --zones"),
    )
    yield say("How are the lines added up?", read("parcelpost/report.py"), read("parcelpost/invoice.py"))
    yield say("Checking all parcels of one customer.", grep(r"^P-\d+;Ecru;", "data/shipments.csv"))
    yield say("A parcel that is too heavy would fail the whole month. Is there one?", run(_WEIGHTS))
    yield expand(
        "Which errors did the log contain?", "nightly.log", "ERROR", grep("ERROR", "logs/nightly.log")
    )


def _finish() -> Iterator[Step]:
    yield say(
        "The zone lookup scans the whole table for each parcel. Is that slow?",
        run("python -m timeit -n 20 -s 'from parcelpost.zones import zone_of' 'zone_of(\"97000\")'"),
    )
    yield say("Fast enough for 640 parcels. Any leftovers?", grep(r"FIXME|XXX|print\(", "parcelpost"))
    changes = "".join(f"- {fault.decision}\n" for fault in FAULTS)
    yield say("Adding a changelog.", edit("CHANGELOG.md", "", f"# Changes\n\n{changes}"))
    changed = list(dict.fromkeys(fault.path for fault in FAULTS))
    yield say("Reviewing the changed files.", *(read(path) for path in changed[:3]))
    yield say("And the remaining files.", *(read(path) for path in changed[3:]))
    yield say("Running all tests one last time.", run(f"{TESTS} -v"))
    yield say("Closing the notes.", remember("done", _ANSWERED, add("next", "Nothing; the task is done.")))
    yield Reply(
        "All 27 tests pass. I fixed: rounding half up, the ends of the postcode ranges, the volumetric "
        "weight and the limits of the brackets, multiplying discounts with a cap, tax on the discounted "
        "price, decimal commas and the byte order mark, and returned parcels."
    )
