"""Failures in tool outputs: recognized without a flag, and verbatim through every step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.descriptors import describe_failure
from compaction.planning.pipeline import PlanRequest, plan
from compaction.policy import Budget, get_policy
from compaction.strategies import STRATEGIES
from compaction.tools.failures import failing_lines, reports_failure
from compaction.view import apply
from tests.compaction.builders import COUNTER, assistant, call, lines, parse, result, system, user

BALANCED = get_policy("balanced")

PASSING = "\n".join(f"tests/test_{n}.py::test_case PASSED [{n}%]" for n in range(120))

FAILURES = {
    "pytest": "=================================== FAILURES ===================================\n"
    "_____ test_total _____\n\n>       assert total([1]) == 2\nE       assert 1 == 2\n\n"
    "tests/test_a.py:9: AssertionError\n=========== 1 failed, 119 passed in 0.41s ===========",
    "unittest": "======================================================================\n"
    "FAIL: test_total (tests.TestSum.test_total)\n"
    "----------------------------------------------------------------------\n"
    "Traceback (most recent call last):\n  File 'a.py', line 3, in test_total\nAssertionError: 1 != 2\n\n"
    "FAILED (failures=1)",
    "npm": "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1",
    "java": 'Exception in thread "main" java.lang.NullPointerException\n'
    "\tat a.B.c(B.java:3)\n\tat a.B.main(B.java:9)",
    "maven": "[ERROR] Failed to execute goal: Compilation failure",
    "rust": "error[E0308]: mismatched types\n --> src/main.rs:3:5\n  |\n3 |     x\n  |     ^ expected `u8`",
    "cargo test": "test result: FAILED. 3 passed; 1 failed",
    "typescript": "src/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.",
    "go": "--- FAIL: TestTotal (0.00s)\n    a_test.go:9: got 1, want 2\nFAIL",
    "go build": "./main.go:7:2: undefined: total",
    "curl": "curl: (7) Failed to connect to localhost port 80 after 0 ms",
    "vitest": " Test Files  1 failed | 2 passed (3)\n      Tests  1 failed | 9 passed (10)",
    "edit": "[Your proposed edit has introduced new syntax error(s). Please retry your edit command.]",
    "psql": 'ERROR:  relation "orders" does not exist\nLINE 1: select * from orders',
    "psycopg": 'psycopg2.errors.UndefinedTable: relation "orders" does not exist',
    "mysql": "ERROR 1064 (42000): You have an error in your SQL syntax",
    "python": "Traceback (most recent call last):\n  File 'a.py', line 1, in <module>\n    total()\n"
    "ValueError: empty",
    "jest": "Tests:       1 failed, 119 passed, 120 total",
    "gcc": "main.c:3:5: error: unknown type name 'foo'",
    "make": "make: *** [Makefile:3: all] Error 2",
    "shell": "bash: pytst: command not found",
    "dotnet": "Program.cs(3,5): error CS1002: ; expected",
    "ruby": "12 examples, 1 failure",
    "docker": "Error response from daemon: No such container: web",
    "kubectl": 'Error from server (NotFound): pods "web" not found',
    "terraform": "│ Error: Reference to undeclared resource",
    "elixir": "** (RuntimeError) total failed",
    "pip": "ERROR: Could not find a version that satisfies the requirement total",
    "ruff": "a.py:1:8: F401 `os` imported but unused\nFound 1 error.",
    "out of memory": "Killed",
    "node": "Error: Cannot find module './total'",
    "mise": "[test] ERROR task failed",
}

SUCCESSES = [
    PASSING + "\n==== 120 passed in 0.4s ====",
    "test result: ok. 4 passed; 0 failed",
    "Tests:       3 passed, 3 total",
    "[INFO] Tests run: 3, Failures: 0, Errors: 0\n[INFO] BUILD SUCCESS",
    "12 examples, 0 failures",
    "ok  \tgithub.com/acme/total\t0.1s",
    "    Finished `dev` profile in 0.1s",
    "fixed the error in total(); no failures left",
    "Found 0 errors.",
    "Killed 3 processes",
]


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_recognized_without_a_flag(name: str) -> None:
    assert reports_failure(f"{PASSING}\n{FAILURES[name]}")


@pytest.mark.parametrize("text", SUCCESSES, ids=range(len(SUCCESSES)))
def test_a_success_is_not_a_failure(text: str) -> None:
    assert not reports_failure(text)
    assert failing_lines(text) == []


@pytest.mark.parametrize("name", FAILURES)
def test_the_lines_of_a_failure_remain_verbatim_and_the_rest_collapses(name: str) -> None:
    text = f"{PASSING}\n{FAILURES[name]}\n{PASSING if name == 'curl' else ''}"
    shown = describe_failure(text, "h_1")
    assert FAILURES[name] in shown
    assert "handle h_1" in shown
    assert len(shown) < len(text) / 2


@pytest.mark.parametrize("name", ["pytest", "java", "psql", "python"])
@pytest.mark.parametrize("place", ["middle", "tail"])
def test_a_failure_survives_every_step_that_shortens(name: str, place: str) -> None:
    failing = [call("f", "bash", command="make test"), result("f", f"{PASSING}\n{FAILURES[name]}")]
    other = [
        item
        for n in range(8)
        for item in (call(f"c{n}", "bash", command=f"ls {n}"), result(f"c{n}", lines(60, word=f"w{n}")))
    ]
    items = [system(), user("Fix the build."), *failing, *other, assistant("Done.")]
    if place == "tail":
        items = [system(), user("Fix the build."), *other, *failing]
    messages = parse(items)
    view = apply((), messages)
    steps = tuple(name for name in BALANCED.steps if STRATEGIES[name].is_free or name == "offload")
    for budget in (view.tokens // 2, view.tokens // 8):
        request = PlanRequest(
            view=view,
            policy=replace(BALANCED, steps=steps),
            counter=COUNTER,
            budget=Budget(input_tokens=budget),
            trigger="hard",
        )
        made = plan(request)
        assert made.edits
        assert FAILURES[name] in "\n".join(message.text for message in made.view.messages)


def test_a_failure_behind_a_pipe_survives_although_the_call_succeeded() -> None:
    report = f"{PASSING}\n{FAILURES['pytest']}\n[Command finished with exit code 0]"
    failing = [call("f", "bash", command="pytest 2>&1 | tail -200"), result("f", report)]
    other = [call("o", "bash", command="ls"), result("o", lines(200)), assistant("Done."), user("Thanks.")]
    view = apply((), parse([system(), user("Fix the build."), *failing, *other]))
    budget = Budget(input_tokens=view.tokens)
    made = plan(PlanRequest(view=view, policy=BALANCED, counter=COUNTER, budget=budget, trigger="hard"))
    assert any(FAILURES["pytest"] in message.text for message in made.view.messages)
    assert not any(PASSING in message.text for message in made.view.messages)


def test_an_unrecognized_failure_is_unchanged() -> None:
    text = "The operation was refused.\n" * 200
    assert describe_failure(text, "h_1") == text


def test_a_failure_larger_than_the_budget_keeps_its_beginning_and_end() -> None:
    report = FAILURES["unittest"].replace("AssertionError", lines(400) + "\nAssertionError")
    items = [system(), user("Fix the build."), call("f", "bash", command="make test"), result("f", report)]
    view = apply((), parse(items))
    budget = Budget(input_tokens=view.tokens // 3)
    made = plan(PlanRequest(view=view, policy=BALANCED, counter=COUNTER, budget=budget, trigger="hard"))
    assert [edit.strategy for edit in made.edits] == ["offload"]
    shown = made.view.messages[-1].text
    assert "FAIL: test_total" in shown
    assert "FAILED (failures=1)" in shown
    assert "handle h_" in shown
    assert made.fits
