"""A recap lists each command with its newest outcome."""

from __future__ import annotations

import json

import pytest

from compaction.identifiers.extract import references
from compaction.recap import Status, extract
from compaction.recap.parse import recap_parse
from tests.compaction.recaps import COUNTER, FAILURE, TESTS, Transcript, recap_of, worked_session


def test_a_recap_keeps_commands_with_outcomes_and_error_lines() -> None:
    facts = {item.text: item for item in recap_of(worked_session()).facts}
    assert facts["`pytest -q`"].status is Status.OPEN
    assert facts["`pytest -q`"].notes == ('failed t4 "FAILED tests/test_pool.py"',)
    assert facts["`ruff check`"].notes == ('ok t6 "3 passed in 0.42s"',)
    assert facts["`ruff check`"].status is None


@pytest.mark.parametrize("tool", ["update_working_memory", "mcp__contextapp__update_working_memory"])
def test_calls_of_the_agent_tools_are_not_listed(tool: str) -> None:
    done = "working memory is at revision 3"
    transcript = worked_session().calls("add_label", "labeled", is_error=False, label="pool", issue=41)
    transcript = transcript.calls(tool, done, is_error=False, reason="the tax", next="run the tests")
    text = recap_of(transcript).render()
    assert "`add_label pool 41`" in text
    assert "working memory" not in text
    assert "update_working_memory" not in text


def test_a_success_replaces_the_earlier_failure_of_a_command() -> None:
    transcript = worked_session().calls("Bash", "5 passed", is_error=False, command="pytest -q")
    facts = [item for item in recap_of(transcript).facts if item.text == "`pytest -q`"]
    assert [item.notes for item in facts] == [('ok t7 "5 passed"',)]


@pytest.mark.parametrize(
    ("command", "text", "outcome"),
    [
        ("pytest -q 2>&1 | tail -5", FAILURE, 'failed t7 "FAILED tests/test_pool.py"'),
        ("pytest -q | tee log || true", FAILURE, 'failed t7 "FAILED tests/test_pool.py"'),
        ('make "a|b"', FAILURE, 'ok t7 "FAILED tests/test_pool.py"'),
        (
            "git commit | head",
            "fixed it\n[Command finished with exit code 0]\nroot@box:/src #",
            'ok t7 "fixed it"',
        ),
    ],
)
def test_the_outcome_of_a_command_is_that_of_its_first_program(command: str, text: str, outcome: str) -> None:
    recap = recap_of(worked_session().calls("Bash", text, is_error=False, command=command))
    assert recap.facts[-1].notes == (outcome,)


@pytest.mark.parametrize(
    ("text", "failed", "outcome"),
    [
        (
            "--- FAIL: TestPool (0.1s)\n    pool_test.go:9: no\nFAIL\nFAIL\tx.io/pool\t0.2s\nFAIL",
            True,
            "--- FAIL: TestPool (0.1s)",
        ),
        ("pool.go:9:2: undefined: evict\n[lint] ERROR task failed", True, "pool.go:9:2: undefined: evict"),
        ("FAIL", True, "FAIL"),
        (
            (
                "[lint:go] pool.go:9:2: Error return value is not checked\n[lint:go]   func Evict() error {\n"
                "[lint:go]   ^\n[lint:go] 1 issues:"
            ),
            True,
            "[lint:go] pool.go:9:2: Error return value is not checked",
        ),
        (
            "pool.c:3:9: error: unknown type\n  error_t evict;\n  ^~~~~~~",
            True,
            "pool.c:3:9: error: unknown type",
        ),
        ("0 issues.\nFinished in 2.66s", False, "0 issues."),
        ("Checked 9 files.\n> pool@1.0.0 check\n> tsc --noEmit", False, "Checked 9 files."),
        (
            "Tests  31 passed (31)\nDuration 2s\n% Coverage report from v8\n---|---",
            False,
            "Tests  31 passed (31)",
        ),
    ],
)
def test_the_outcome_is_the_line_that_says_most(text: str, failed: bool, outcome: str) -> None:
    recap = recap_of(worked_session().calls("Bash", text, is_error=failed, command="make test"))
    assert recap.facts[-1].notes == (f'{"failed" if failed else "ok"} t7 "{outcome}"',)


def test_the_outcome_of_a_sub_agent_is_the_end_of_its_report() -> None:
    usage = "agentId: a1\n<usage>total_tokens: 80319\ntool_uses: 37\nduration_ms: 153280</usage>"
    report = f"The lock is released.\n**Verdict: REQUEST CHANGES**\n{usage}"
    recap = recap_of(worked_session().calls("Task", report, description="Review the pool"))
    assert recap.facts[-1].notes == ('ok t7 "**Verdict: REQUEST CHANGES**"',)


def test_a_command_that_the_terminal_repeats_is_not_its_outcome() -> None:
    command = "rm src/old_pool.py"
    assert recap_of(worked_session().calls("Bash", command, command=command)).facts[-1].notes == ("ok t7",)


def test_searches_and_listings_that_succeed_are_left_out() -> None:
    transcript = worked_session().calls("Bash", "pool.py", is_error=False, command="cd src && ls -la")
    transcript.calls("Bash", "3", is_error=False, command="grep -E 'a|b > c' x 2>/dev/null | sort | wc -l")
    transcript.calls("Bash", "+    return idle", is_error=False, command="gh pr diff 227 --name-only")
    transcript.calls("Bash", "fatal: bad revision", is_error=True, command="git log nothing")
    assert [item.text for item in recap_of(transcript).facts] == [
        "`pytest -q`",
        "`ruff check`",
        "`git log nothing`",
    ]


@pytest.mark.parametrize(
    "command",
    ["echo DEBUG=1 >> .env", "cat schema.sql | psql", "ls | xargs rm", "find . -name '*.pyc' -delete"],
)
def test_commands_that_change_something_are_kept_although_they_begin_with_a_search(command: str) -> None:
    transcript = worked_session().calls("Bash", "", is_error=False, command=command)
    assert recap_of(transcript).facts[-1].text == f"`{command}`"


def test_calls_of_other_tools_have_the_values_of_their_results() -> None:
    order = {"id": "W123", "status": "pending", "items": [{"sku": "lamp-7", "price": 54}], "note": "x" * 90}
    transcript = Transcript().user("Return my lamp.")
    transcript.calls("get_order", json.dumps(order), order_id="W123", token="y" * 90)
    transcript.calls("cancel_order", '{"error": "order W123 is not pending"}', order_id="W123")
    recap = recap_of(transcript)
    assert [item.render() for item in recap.facts] == [
        '- `get_order W123`: ok t1 "status pending, sku lamp-7, price 54"',
        '- [open] `cancel_order W123`: failed t2 "{"error": "order W123 is not pending"}"',
    ]
    assert "order_id" not in references(recap.render())


def test_runs_that_show_more_or_less_of_the_output_are_one_command() -> None:
    transcript = worked_session()
    for shown in ("2>&1 | tail -40", "2>&1 | head -n 5", "2>&1"):
        transcript.calls("Bash", "5 passed", is_error=False, command=f"{TESTS} {shown}")
    facts = [(item.text, item.notes) for item in recap_of(transcript).facts[1:]]
    assert facts == [("`pytest -q`", ('ok t9 "5 passed"',))]
    for shown in ("grep FAILED", "grep -c FAILED", "head -3", "head -3"):
        transcript.calls("Bash", FAILURE, is_error=True, command=f"{TESTS} 2>&1 | {shown}")
    assert [item.text for item in recap_of(transcript).facts[1:]] == ["`pytest -q`"]


def test_a_call_that_the_user_rejects_is_not_a_failure() -> None:
    rejected = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    transcript = worked_session()
    for command in ("rm -r build", "pytest -q", "ruff format && pytest -q"):
        transcript.calls("Bash", rejected, is_error=True, command=command)
    first = recap_of(transcript)
    facts = {item.text: item for item in recap_of(transcript.says("Done."), previous=first).facts}
    assert (facts["`rm -r build`"].status, facts["`rm -r build`"].notes) == (
        None,
        ("rejected by the user t7",),
    )
    assert facts["`pytest -q`"].notes == ('failed t4 "FAILED tests/test_pool.py"',)
    assert facts["`pytest -q`"].status is Status.OPEN


def test_a_command_that_failed_long_ago_is_no_longer_open() -> None:
    transcript = worked_session()
    before = recap_of(transcript)
    for number in range(30):
        transcript.calls("Read", "x = 1", path=f"src/m{number}.py")
    [command] = [item for item in recap_of(transcript).facts if item.text == "`pytest -q`"]
    assert (command.status, command.notes) == (None, ('failed t4 "FAILED tests/test_pool.py"',))
    assert before.facts[0].status is Status.OPEN


@pytest.mark.parametrize(
    ("command", "is_open"),
    [
        ("ruff format && pytest -q", False),
        ("ruff format && pytest -q 2>&1 | tail -5", False),
        ("ruff format; pytest -q && ls", False),
        ("pytest -q; ruff format", True),
        ("pytest -q || true", True),
        ("ls && cd client; pytest -q", True),
        ("cd client && pytest -q", True),
        ("pytest -q -k pool && ruff format", True),
    ],
)
def test_a_command_that_succeeds_within_another_is_no_longer_open(command: str, is_open: bool) -> None:
    transcript = worked_session().calls("Bash", "5 passed", is_error=False, command=command)
    opened = [item.text for item in recap_of(transcript).facts if item.status is Status.OPEN]
    assert opened == (["`pytest -q`"] if is_open else [])


@pytest.mark.parametrize(
    ("failed", "passed", "is_open"),
    [
        ("go test ./... | grep FAIL", "go test ./... 2>&1 | tail -5", False),
        ("go test ./... | grep FAIL", "go test ./... | grep -c ok", True),
        ("cd web && npm test 2>&1 | grep error", "cd web && npm test", False),
        ("npm test", "cd web && npm test", True),
        ("make fmt && make lint", "make fmt && make lint && make test", False),
        ("make fmt && make lint", "make lint", False),
        ("make build && make lint", "make lint", True),
        ("make build && make lint", "make lint && make build", False),
        ("npm ci; npm run lint", "echo again; npm ci && npm run lint; echo $?", True),
        ("python3 a.py", "cd /work; python a.py", False),
        ("cd /work && python3 /work/a.py", "cd /work && python a.py | tail -3", False),
        ("cd /work/web && npm run lint", "cd /work/api && npm run lint", True),
        ("cd web && npm run lint", "(cd web && npm ci) && npm run lint", True),
        ("npm run lint", "(cd web && npm ci) && npm run lint", False),
        ("npm run lint", "cd web && npm ci && cd .. && npm run lint", False),
        ("cd web && pytest -q", "python -m pytest web -x --tb=short", False),
        ("pytest -x tests/test_a.py", "cd /work && python3 -m pytest /work/tests -q", False),
        ("pytest tests/test_a.py::test_b", "PYTHONPATH=. pytest tests/test_a.py -n 4", False),
        ("pytest tests", "pytest tests/test_a.py", True),
        ("pytest tests", "pytest tests -k fast", True),
        ("pytest tests -m slow", "python -m pytest tests/ -m slow -v", False),
        ("pytest tests/test_a.py", "pytest web/tests/test_a.py", True),
        ("go test ./pool -run TestEvict", "go test -count=1 ./...", False),
        ("go test ./pool/...", "go test ./pool", True),
        ("go test -tags=integration ./pool", "go test ./...", True),
        ("cargo test pool", "cargo test", False),
        ("cargo test", "cargo test pool", True),
        ("npx jest web/a.test.ts", "npm test", False),
        ("npx jest web/a.test.ts", "npm run test:unit", True),
        ("npm run test:unit", "npm run test:e2e", True),
        ("make lint", "make lint 2>&1 && make test 2>&1", False),
        ("make lint", "git stash && make lint && git stash pop", True),
        ("make lint", "make lint &", True),
        ("pytest tests", "pytest tests --co -q", True),
        ("pytest tests", "pytest tests --ignore=tests/slow", True),
        ("DB=postgres pytest tests", "PYTHONPATH=. pytest tests", True),
        ("PYTHONPATH=. pytest tests", "DB=postgres pytest tests", False),
        ("go test ./...", "go test -short ./...", True),
        ("go test -race ./...", "go test ./...", True),
        ("go test ./...", "go test -race ./...", False),
        ("cargo test", "cargo test -p pool", True),
        ("cargo test -p pool", "cargo test", False),
        ("manage.py test --settings=a pool", "manage.py test --settings=b pool", True),
        ("pytest tests", "npm test", True),
        ("make check", "make test", True),
        ("pytest tests", "make test -C docs", True),
    ],
)
def test_a_failed_command_is_open_until_a_run_of_the_same_command_succeeds(
    failed: str, passed: str, is_open: bool
) -> None:
    transcript = Transcript().user("Fix it.").calls("Bash", FAILURE, is_error=True, command=failed)
    for previous in (None, recap_of(transcript)):
        later = Transcript() if previous else transcript
        later.calls("Bash", "5 passed", is_error=False, command=passed)
        opened = [fact for fact in recap_of(later, previous=previous).facts if fact.status is Status.OPEN]
        assert bool(opened) == is_open


def test_successes_with_other_filters_are_one_command() -> None:
    transcript = Transcript().user("Fix it.")
    for command in (
        "make check 2>&1 | grep -c error",
        "make check | grep error | wc -l",
        "make check | tail -3",
    ):
        transcript.calls("Bash", "0", is_error=False, command=command)
    transcript.calls("Bash", "", is_error=False, command="make check | grep error && make")
    first = recap_of(transcript)
    assert [fact.text for fact in first.facts] == ["`make check`", "`make check | grep error && make`"]
    messages = transcript.calls("Bash", "0", is_error=False, command="make check | sort").messages[-2:]
    later = extract(messages, counter=COUNTER, cap_tokens=1_000, previous=first)
    assert [fact.text for fact in later.facts] == ["`make check | grep error && make`", "`make check | sort`"]


@pytest.mark.parametrize(
    ("commands", "is_open"),
    [
        (["make lint", "make build"], False),
        (["make lint"], True),
        (["rm -f build.py", "make lint"], True),
    ],
)
def test_the_failure_of_a_chain_is_open_until_each_command_has_succeeded(
    commands: list[str], is_open: bool
) -> None:
    transcript = Transcript().user("Fix it.")
    transcript.calls("Bash", FAILURE, is_error=True, command="make build && make lint")
    for command in commands:
        transcript.calls("Bash", "", is_error=False, command=command)
    assert any(fact.status is Status.OPEN for fact in recap_of(transcript).facts) == is_open


def test_the_failure_of_a_script_that_was_removed_is_left_out() -> None:
    transcript = Transcript().user("Fix it.")
    transcript.calls("Bash", FAILURE, is_error=True, command="cd /work && python /tmp/try_it.py")
    transcript.calls("Bash", FAILURE, is_error=True, command="python try_more.py")
    transcript.calls("Bash", "", is_error=False, command="rm try_it.py")
    assert [fact.text for fact in recap_of(transcript).facts] == ["`python try_more.py`", "`rm try_it.py`"]


@pytest.mark.parametrize(
    ("failed", "command"),
    [
        ("npm run build", "rm -rf build"),
        ("gcc pool.c -o pool.out", "rm -f pool.out"),
        ("python migrate.py test.db", "rm test.db"),
        ("pytest tests/test_pool.py", "git mv tests/test_pool.py tests/unit/test_pool.py"),
    ],
)
def test_a_failure_remains_if_its_output_is_removed_or_its_script_moved(failed: str, command: str) -> None:
    transcript = Transcript().user("Fix it.").calls("Bash", FAILURE, is_error=True, command=failed)
    facts = recap_of(transcript.calls("Bash", "", is_error=False, command=command)).facts
    assert (facts[0].text, facts[0].status) == (f"`{failed}`", Status.OPEN)


def test_a_search_that_failed_long_ago_is_left_out() -> None:
    transcript = Transcript().user("Fix it.")
    transcript.calls("Bash", "ls: ../lib: No such file", is_error=True, command="ls ../lib")
    assert len(recap_of(transcript).facts) == 1
    for number in range(30):
        transcript.calls("Read", "x = 1", path=f"src/m{number}.py")
    assert recap_of(transcript).facts == ()


def test_what_an_agent_appends_to_the_last_line_is_not_quoted() -> None:
    transcript = worked_session().calls("Bash", "3.2 ms</output>", is_error=False, command="time a")
    transcript.calls("Bash", "3 rows[Python Interpreter: /opt/bin/python]", command="b")
    notes = [fact.notes for fact in recap_of(transcript).facts[-2:]]
    assert notes == [('ok t7 "3.2 ms"',), ('ok t8 "3 rows"',)]


@pytest.mark.parametrize(
    ("command", "output", "is_open"),
    [
        ("pytest -q | head -3", "collected 9\n...\nwarnings", True),
        ("pytest -q 2>&1 | head -40", "......... 9 passed in 1s", False),
        ("pytest -q | tail -1", "9 passed in 1s", False),
        ("pytest -q | tail -2", "see the log\ndone", True),
        ("make lint 2>&1 | head", "a.py\n" * 10, True),
        ("make lint 2>&1 | head -c 20", "a.py\n" * 4, True),
        ("make lint 2>&1 | head -c50", "a.py\n" * 9, False),
        ("make lint 2>&1 | tail -3", "a.py\n" * 3, False),
        ("cd /work && make test 2>&1 | tail -2", "see the log\ndone", False),
        ("make lint | grep -v note | head -n 2", "a.py\nb.py", True),
    ],
)
def test_a_failure_is_open_after_a_run_that_shows_too_little_of_its_output(
    command: str, output: str, is_open: bool
) -> None:
    failed = next(name for name in ("pytest -q", "make lint", "make test") if name in command)
    transcript = Transcript().user("Fix it.").calls("Bash", FAILURE, is_error=True, command=failed)
    transcript.calls("Bash", output, is_error=False, command=command)
    assert any(fact.status is Status.OPEN for fact in recap_of(transcript).facts) == is_open


def test_a_run_that_shows_too_little_of_its_output_is_listed_without_an_outcome() -> None:
    transcript = Transcript().user("Fix it.")
    transcript.calls("Bash", "collected 9\nplugins: x", is_error=False, command="pytest -q | head -2")
    transcript.calls("Bash", "x = 1\ny = 2", is_error=False, command="cat a.py | head -2")
    first = recap_of(transcript)
    assert [fact.render() for fact in first.facts] == ['- `pytest -q`: ran t1 "plugins: x"']
    written = recap_parse(first.render(), previous=first, position=9)
    later = Transcript().calls("Bash", "9 passed", is_error=False, command="pytest -q")
    assert [fact.notes for fact in recap_of(later, previous=written).facts] == [('ok t1 "9 passed"',)]


SCRIPT = (
    "cd /work && cat > try.py << 'EOF'\nimport pool\npool.evict()  # a | b\nEOF\n\n# Try it\npython try.py"
)


def test_a_program_that_runs_after_a_here_document_has_an_outcome() -> None:
    transcript = Transcript().user("Fix it.").calls("Bash", FAILURE, is_error=True, command=SCRIPT)
    transcript.calls("Bash", "", is_error=False, command="cat > notes.md << 'EOF'\nTo do\nEOF")
    recap = recap_of(transcript)
    assert [(fact.text, fact.status) for fact in recap.facts] == [
        ("`cd /work && cat > try.py; python try.py`", Status.OPEN)
    ]
    assert {"try.py", "notes.md"} <= {item.text for item in recap.entities}
    later = Transcript().calls("Bash", "ok", is_error=False, command="python3 try.py")
    assert [fact.text for fact in recap_of(later, previous=recap).facts] == ["`python3 try.py`"]


def test_the_lines_of_a_command_are_separate_commands_in_the_next_recap() -> None:
    command = "# Build\ncd web\nnpm run lint \\\n  --fix &&\nnpm run build"
    recap = recap_of(Transcript().user("Fix it.").calls("Bash", FAILURE, is_error=True, command=command))
    assert [fact.text for fact in recap.facts] == ["`cd web; npm run lint --fix && npm run build`"]
    later = Transcript()
    for step in ("npm run lint --fix", "npm run build"):
        later.calls("Bash", "done", is_error=False, command=f"cd web && {step}")
    assert all(fact.status is None for fact in recap_of(later, previous=recap).facts)


@pytest.mark.parametrize(
    "text",
    [
        "Command running in background with ID: b7f2. Output is being written to: /tmp/tasks/b7f2.output",
        "Command did not complete within its 120s timeout and was moved to the background with ID: b7f2",
        "Chunk ID: f800eb\nWall time: 1.0 seconds\nProcess running with session ID 322\nOutput:\nBuilding",
    ],
)
def test_a_command_that_continues_in_the_background_is_not_a_success(text: str) -> None:
    failed = (
        Transcript().user("Build it.").calls("Bash", "error: no disk", is_error=True, command="npm run build")
    )
    failed.calls("Bash", text, is_error=False, command="npm run build")
    assert [fact.status for fact in recap_of(failed).facts] == [Status.OPEN]
    started = Transcript().user("Serve it.").calls("Bash", text, is_error=False, command="npm run serve")
    assert [note.split(" t")[0] for fact in recap_of(started).facts for note in fact.notes] == ["started"]


def test_a_sub_agent_in_the_background_is_listed_as_started() -> None:
    launched = (
        "Async agent launched successfully.\nagentId: afba179 (This is an internal ID for your use)\n"
        "The agent is working in the background. You will be notified automatically when it completes."
    )
    transcript = Transcript().user("Review it.").calls("Agent", launched, description="Review the pool")
    assert [fact.render() for fact in recap_of(transcript).facts] == [
        '- `Agent Review the pool`: started t1 "agentId: afba179"'
    ]


def test_a_small_recap_lists_what_the_agent_changed_rather_than_what_it_looked_up() -> None:
    transcript = Transcript().user("Cancel my trips.")
    for number in range(4):
        transcript.calls("cancel_trip", '{"state": "cancelled"}', trip=f"T{number}")
        transcript.calls("get_trip", '{"state": "cancelled", "city": "Oslo"}', trip=f"T{number}")
    facts = recap_of(transcript, cap=600).facts
    assert [fact.text for fact in facts] == [f"`cancel_trip T{number}`" for number in range(4)]
