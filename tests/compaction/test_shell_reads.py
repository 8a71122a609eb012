"""Shell commands that show files, and the treatment of their outputs."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.transcripts import transcripts
from compaction.messages import ToolCall
from compaction.planning.pipeline import PlanRequest, plan
from compaction.policy import Budget, Policy
from compaction.settings import ToolRule
from compaction.tools.actions import Action, Kind, action_of
from tests.compaction.builders import COUNTER, call, lines, result, system, user, view_of


def action(command: str) -> Action:
    return action_of(ToolCall(call_id="c", name="bash", arguments=json.dumps({"command": command})))


#: Commands that only show files, and the path that is recorded.
READS = [
    ("cat a.py", "a.py"),
    ("cat 'my file.py'", "my file.py"),
    ('cat "my file.py"', "my file.py"),
    ("cat my\\ file.py", "my file.py"),
    (r"cat src\pool.py", r"src\pool.py"),
    (r"cat src\__init__.py", r"src\__init__.py"),
    (r"cd sub && cat C:\src\pool.py", r"C:\src\pool.py"),
    (r"Get-Content C:\src\pool.py -Tail 5", r"C:\src\pool.py"),
    ("cat -n a.py", "a.py"),
    ("cat -- -odd.py", "-odd.py"),
    ("cat < a.py", "a.py"),
    ("cat a.py b.py", ""),
    ("cat src/*.py", ""),
    ("/bin/cat a.py", "a.py"),
    ("cd /w && cat a.py", "a.py"),
    ("cd sub && cat a.py", "sub/a.py"),
    ("cd /w; cd sub\ncat ../a.py", "a.py"),
    ("pushd sub && cat a.py; popd", "sub/a.py"),
    ("sed -n '1,40p' a.py", "a.py"),
    ("sed -n -e 1,4p -e 9p a.py", "a.py"),
    ("sed -n '1,9p' a.py && sed -n '20,40p' a.py", "a.py"),
    ("sed -n 1,9p a.py; echo ---; sed -n 1,9p b.py", ""),
    ("sed -n '/def f/,/^}/p' \"my file.py\"", "my file.py"),
    ("awk 'NR>=10 && NR<=20' a.py", "a.py"),
    ("awk -F: '{print $1}' /etc/passwd", "/etc/passwd"),
    ("awk -v n=3 'NR==n {print; exit}' a.py", "a.py"),
    ("git show HEAD:src/a.py", "src/a.py"),
    ("git show abc123 --", ""),
    ("git -C /w --no-pager show HEAD~1:a.py | head -50", "a.py"),
    ("git diff HEAD~1 -- a.py", ""),
    ("git blame a.py", ""),
    ("git log -p -1", ""),
    ("head -n 20 a.py", "a.py"),
    ("head -20 a.py", "a.py"),
    ("tail -n +10 a.py", "a.py"),
    ("tail -c 200 a.log | tr -d '\\r'", "a.log"),
    ("head -30 a.py | tail -10", "a.py"),
    ("nl -ba a.py | sed -n '1,20p'", "a.py"),
    ("nl -b a a.py", "a.py"),
    ("bat --style=plain -r 1:20 a.py", "a.py"),
    ("batcat a.py", "a.py"),
    ("less +10 a.py", "a.py"),
    ("less a.py | cat", "a.py"),
    ("cat a.py 2>/dev/null", "a.py"),
    ("cat a.py 2>&1 | head -100", "a.py"),
    ("cat a.py || true", "a.py"),
    ("cat a.py | grep -n 'x'", "a.py"),
    ("ls -la && cat a.py", "a.py"),
    ("for f in a.py b.py; do echo $f; cat $f; done", ""),
    ("if [ -f a.py ]; then cat a.py; fi", "a.py"),
    ("(cd sub && cat a.py)", "sub/a.py"),
    ("{ cat a.py; }", "a.py"),
    ("find . -name '*.py' | xargs cat", ""),
    ("find . -name '*.py' -exec cat {} +", ""),
    ("find . -name '*.py' -print0 | xargs -0 head -20", ""),
    ('bash -lc "cat a.py"', "a.py"),
    ("sudo cat /etc/hosts", "/etc/hosts"),
    ("timeout 5 cat a.py", "a.py"),
    ("docker exec web cat /app/a.py", "/app/a.py"),
    ("LC_ALL=C cat a.py", "a.py"),
    ("cat a.py # the entry point", "a.py"),
    ("jq . package.json", "package.json"),
    ("git show HEAD:a.json | python3 -m json.tool", "a.json"),
    ("xxd a.bin | head", "a.bin"),
    ("diff a.py b.py", ""),
    ("Get-Content a.py -TotalCount 20", "a.py"),
    ("cat 'unterminated", "unterminated"),
    ('cat "it\'s"', "it's"),
    ("cat $(git rev-parse --show-toplevel)/a.py", ""),
]


def test_a_command_that_only_shows_files_is_a_read(subtests: pytest.Subtests) -> None:
    for command, path in READS:
        with subtests.test(command):
            found = action(command)
            assert (found.kind, found.path, found.shows_file) == (Kind.READ, path, True)


@pytest.mark.parametrize(
    "command",
    [
        "grep -rn 'def f' src",
        "grep -n f a.py b.py | head -20",
        "rg 'def f'",
        "rg -n -C 3 --glob '*.py' pool src | sort",
        "cd /w && rg pool",
        "git grep -n pool",
        "find . -name '*.py' | xargs grep -n pool",
        "egrep 'a|b' a.py",
        "grep -E '^a$' a.py || echo missing",
        "ag pool src",
    ],
)
def test_a_command_that_only_shows_matching_lines_is_a_search(command: str) -> None:
    found = action(command)
    assert (found.kind, found.path, found.shows_file) == (Kind.SEARCH, "", True)


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q && cat report.txt",
        "make > log 2>&1; tail -50 log",
        "python fix.py\ncat a.py",
        "git status && git show HEAD:a.py",
    ],
)
def test_a_command_that_also_shows_a_file_is_still_a_command(command: str) -> None:
    found = action(command)
    assert (found.kind, found.shows_file) == (Kind.COMMAND, True)


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q | tail -5",
        "python x.py 2>&1 | grep -v warning",
        "npm test | head -100 | sed 's/a/b/'",
        "cat a.py | python check.py",
        "cat requests.json | curl -d @- https://example.com",
        "cat",
        "cat > a.py",
        "cat a.py > b.py",
        "head -5 a.py >> b.py",
        "git status",
        "git log --oneline",
        "git show --stat HEAD",
        "ls -la | grep py",
        "echo 'cat a.py'",
        "# cat a.py",
        "python - <<'EOF'\ncat a.py\nEOF",
        "concat a.py",
        "docker ps | grep web",
        "",
        "'",
        "&& | > <",
    ],
)
def test_other_commands_show_no_file(command: str) -> None:
    assert not action(command).shows_file


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("sed -i 's/a/b/' a.py", "a.py"),
        ("sed -i.bak -e 's/a/b/' 'my file.py'", "my file.py"),
        ("sed -i 's/a/b/' a.py && pytest -q", "a.py"),
        ("cd sub && sed -i '3d' a.py && cat a.py", "sub/a.py"),
        ("sed -i '3d' 'app/[id]/page.tsx'", "app/[id]/page.tsx"),
        (r"sed -i 's/a/b/' src\pool.py", r"src\pool.py"),
    ],
)
def test_a_file_changed_in_place_is_an_edit(command: str, path: str) -> None:
    found = action(command)
    assert (found.kind, found.path) == (Kind.EDIT, path)


@pytest.mark.parametrize(
    "command",
    [
        "sed -i 's/a/b/' \"$file\"",
        "for file in *.py; do sed -i 's/a/b/' $file; done",
        "sed -i 's/a/b/' src/*.py",
        'cat > "$OUT" <<EOF\nx\nEOF',
    ],
)
def test_a_command_that_changes_files_which_it_does_not_name_is_a_command(command: str) -> None:
    assert action(command) == Action(kind=Kind.COMMAND, command=command)


def test_only_a_read_of_the_whole_file_has_no_span() -> None:
    whole = ("cat a.py", "cd /w && cat a.py", "nl -ba a.py", "cat < a.py")
    part = (
        "head a.py",
        "cat a.py | head",
        "sed -n 1,9p a.py",
        "ls; cat a.py",
        "bat -r 1:20 a.py",
        "sudo cat a.py",
    )
    assert not any(action(command).span for command in whole)
    assert all(action(command).span for command in part)


@given(st.text(alphabet=list("cat sed -ni|&;<>()'\"\\\n$`{}#a.py"), max_size=200))
def test_any_text_can_be_parsed(command: str) -> None:
    action(command)


def test_the_time_to_parse_a_command_is_linear() -> None:
    for piece in ("'", '"', "$(", "`", "\\", "<<", "cat ", "((", "#", "a=", "cat $(cat ", "cat <<a\n"):
        action(f"cat {piece * 5_000}")


@pytest.mark.parametrize(
    ("command", "is_clipped"),
    [
        ("cat a.py b.py", False),
        ("sed -n 1,900p 'my file.py' && sed -n 1,90p b.py", False),
        ("git show HEAD:a.py", False),
        ("rg pool src", False),
        ("make build && cat a.py", False),
        ("make build", True),
    ],
)
def test_outputs_that_show_a_file_are_never_clipped(command: str, is_clipped: bool) -> None:
    items = [system(), user("Fix the pool.")]
    items += [call("a", "bash", command=command), result("a", lines(300))]
    items += [user("And now?"), *[user(f"Go on {n}. " * 40) for n in range(6)]]
    policy = Policy(tools=(ToolRule(pattern="bash", never_collapse=True),), steps=("clip",))
    budget = Budget(input_tokens=6_000)
    made = plan(
        PlanRequest(view=view_of(items), policy=policy, counter=COUNTER, budget=budget, trigger="user")
    )
    assert any(edit.strategy == "clip" for edit in made.edits) is is_clipped


_PLAIN = re.compile(r"(?:cat|nl -ba|head -\d+|sed -n '\d+,\d+p') [\w./-]+")


@pytest.mark.trajectories
def test_recorded_commands_that_print_a_file_are_reads(trajectories: Path) -> None:
    sessions = islice(transcripts(trajectories / "mini-swe-agent"), 0, None, 6)
    commands = {
        str(json.loads(part.arguments).get("command", ""))
        for session in sessions
        for message in session.messages
        for part in message.parts
        if isinstance(part, ToolCall)
    }
    plain = [command for command in commands if _PLAIN.fullmatch(command.rpartition("&& ")[2])]
    assert len(plain) > 20
    assert not [command for command in plain if not action(command).shows_file]
